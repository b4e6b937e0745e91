#pragma once
/// @file
/// The exception of the library. Its text names the tensor, what was expected and what was given.

#include <stdexcept>
#include <string>

namespace palimpsa {

/// A call whose arguments break the contract. Thrown before anything is written.
struct argument_error : std::invalid_argument {
  /// "<tensor>: expected <expected>, given <given>".
  argument_error(std::string const& tensor, std::string const& expected, std::string const& given)
      : std::invalid_argument("palimpsa: " + tensor + ": expected " + expected + ", given " + given) {}
};

/// A call that no code of the library carries out: the algorithm asked for does not exist for this rule.
struct unsupported_error : std::invalid_argument {
  /// A whole sentence.
  explicit unsupported_error(std::string const& sentence) : std::invalid_argument("palimpsa: " + sentence) {}
};

}  // namespace palimpsa
