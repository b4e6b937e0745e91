#pragma once
// The command line of palimpsa-verify.

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "palimpsa/io/run_case.hpp"

namespace verify {

/// What the command line asks for.
struct options {
  palimpsa::io::run_options how;
  bool on_gpu = false;
  bool help = false;
  std::optional<std::string> write;  ///< the file to write a completed case to
  std::vector<std::string> files;
};

/// A command line that is not understood. what() says why, in a sentence.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads the arguments behind the program's name. @throws usage_error
options parse_options(std::vector<std::string> const& arguments);

/// What --help prints.
extern char const* const help_text;

}  // namespace verify
