#pragma once
// The command line of palimpsa-verify.

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "palimpsa/io/run_options.hpp"
#include "palimpsa/version.hpp"

namespace verify {

/// What the command line asks for.
struct options {
  palimpsa::io::run_options how;
  bool on_gpu = false;
  bool help = false;
  bool version = false;
  bool json = false;                  ///< one document in place of the table
  std::vector<std::string> required;  ///< tensors that have to be compared in every file
  std::optional<std::string> write;  ///< the file to write a completed case to
  std::vector<std::string> files;
};

/// A command line that is not understood. what() says why, in a sentence.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads the arguments behind the program's name. @throws usage_error
options parse_options(std::vector<std::string> const& arguments);

/// "0.1.0"
inline std::string version_text() {
  auto const v = palimpsa::version;
  return std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch);
}

/// What --help prints.
extern char const* const help_text;

}  // namespace verify
