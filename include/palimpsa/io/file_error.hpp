#pragma once
/// @file
/// The one exception of the file layer, and the sentence it carries.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// A file that cannot be read or written. what() names the file, the tensor or field, what was expected and what was
/// given; it is plain ASCII apart from the file's own name, whatever bytes the file holds.
class file_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

/// Text from a file, made fit for a terminal: bytes outside printable ASCII become \xNN, and what exceeds `limit` is
/// cut.
inline std::string printable(std::string_view text, std::size_t limit = 80) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown;
  for (char const c : text.substr(0, limit)) {
    auto const byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      shown += c;
    } else {
      shown += "\\x";
      shown += digits[byte >> 4U];
      shown += digits[byte & 15U];
    }
  }
  return text.size() > limit ? shown + "..." : shown;
}

/// Throws file_error("FILE: PLACE: expected EXPECTED, given GIVEN").
[[noreturn]] inline void refuse(std::string const& file, std::string const& place, std::string const& expected,
                                std::string const& given) {
  throw file_error(file + ": " + place + ": expected " + expected + ", given " + given);
}

}  // namespace detail
}  // namespace palimpsa::io
