#pragma once
// The report of palimpsa-verify as one JSON document, for programs. docs/verify.md says what the fields are.

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "palimpsa/io/report.hpp"
#include "verify/options.hpp"

namespace verify {

/// What came of a file.
struct file_report {
  std::string file;                          ///< its path, as given
  std::string error;                         ///< why it could not be read or run; else empty
  std::string nothing_compared;              ///< why nothing was; else empty
  bool has_right_values = true;              ///< is anything in it that could be compared?
  std::string written;                       ///< where --write wrote; else empty
  std::vector<std::string> unused;           ///< tensors that are not of a case
  palimpsa::io::case_report report;          ///< its tensors
};

/// One document. @param exit_code of the program
void print_json(std::ostream& out, std::span<file_report const> files, options const& options, int exit_code);

}  // namespace verify
