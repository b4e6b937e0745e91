#pragma once
// Files made by hand, byte for byte, by code that shares nothing with the writer under test.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsa/io/file_error.hpp"

namespace test_io {

using bytes = std::vector<std::byte>;

inline bytes to_bytes(std::string_view text) {
  bytes result;
  for (char const c : text) result.push_back(static_cast<std::byte>(c));
  return result;
}

inline bytes little_endian(std::uint64_t value, int count = 8) {
  bytes result;
  for (int i = 0; i < count; ++i) result.push_back(static_cast<std::byte>(value >> (8 * i)));
  return result;
}

inline bytes operator+(bytes left, bytes const& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// length, header, data
inline bytes file_of(std::string_view header, bytes const& data = {}) {
  return little_endian(header.size()) + to_bytes(header) + data;
}

inline bytes slurp(std::filesystem::path const& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string const text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  return to_bytes(text);
}

inline void spill(std::filesystem::path const& path, bytes const& contents) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(reinterpret_cast<char const*>(contents.data()), static_cast<std::streamsize>(contents.size()));
}

/// The text of the file_error that an action throws, "" if it throws nothing; any other exception passes through.
template <class Action> std::string error_of(Action action) {
  try {
    action();
  } catch (palimpsa::io::file_error const& error) {
    return error.what();
  }
  return {};
}

/// Does the text contain every fragment? If not, the text comes back, so that a failing check prints it.
inline std::string missing(std::string const& text, std::vector<std::string> const& fragments) {
  for (auto const& fragment : fragments) {
    if (text.find(fragment) == std::string::npos) return "no \"" + fragment + "\" in \"" + text + "\"";
  }
  return {};
}

/// A directory of its own that goes when the test ends.
class scratch_directory {
 public:
  scratch_directory()
      : path_(std::filesystem::temp_directory_path() / ("palimpsa io " + std::to_string(std::random_device{}()))) {
    std::filesystem::create_directory(path_);
  }
  scratch_directory(scratch_directory const&) = delete;
  scratch_directory& operator=(scratch_directory const&) = delete;
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(std::string const& name) const { return path_ / name; }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

/// The case files that ship with the tests, in order of name.
inline std::vector<std::filesystem::path> case_paths() {
  std::vector<std::filesystem::path> paths;
  for (auto const& entry : std::filesystem::directory_iterator(PALIMPSA_TEST_CASES)) {
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace test_io
