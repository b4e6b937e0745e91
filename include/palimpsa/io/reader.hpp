#pragma once
/// @file
/// Reads safetensors: 8 bytes header length n (little-endian), n bytes of JSON, then the tensors' bytes without gap or
/// overlap to the end of the file. Every number is checked before it is used, and no more is allocated than the file
/// holds (times a small constant for a header of many tiny entries).

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/file_error.hpp"
#include "palimpsa/io/json_header.hpp"
#include "palimpsa/io/tensor.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {
namespace detail {

inline constexpr std::uint64_t length_size = 8;  // bytes of the header's length

/// What a file seems to be that begins with these bytes; empty where nothing is known of them.
inline std::string_view known_beginning(std::string_view bytes) {
  struct {
    std::string_view begins, means;
  } constexpr known[] = {{"PK\x03\x04", "a zip archive, as torch.save and numpy.savez write"},
                         {"\x93NUMPY", "an array of numpy.save"},
                         {"\x80\x02", "a pickle"},
                         {"\x80\x04", "a pickle"},
                         {"\x80\x05", "a pickle"},
                         {"\x89HDF", "an HDF5 file"},
                         {"\x89PNG", "a picture"},
                         {"GGUF", "a GGUF file"},
                         {"\x1f\x8b", "a gzip archive"},
                         {"version ", "a pointer of Git LFS, not the file itself"},
                         {"{", "JSON text"}};
  for (auto const& one : known)
    if (bytes.substr(0, one.begins.size()) == one.begins) return one.means;
  return {};
}

/// The length of the header, checked against the size of the file.
inline std::uint64_t header_length(std::span<std::byte const, length_size> bytes, std::uint64_t file_size,
                                   std::string const& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), bytes.size());
  std::string_view const text(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  auto const rest = file_size - length_size;
  if (length <= largest_header && length <= rest) return length;
  auto const expected = length > largest_header ? "at most " + std::to_string(largest_header)
                                                : "at most the " + std::to_string(rest) + " bytes that follow it";
  auto const seems = known_beginning(text);
  refuse(file, "no safetensors file: header length", expected,
         std::to_string(length) + (seems.empty() ? "" : "; it begins like " + std::string(seems)));
}

/// One entry on its own: its offsets lie in the data and hold just what its shape and type take.
inline void check_entry(header_entry const& entry, std::uint64_t data_size, std::string const& file) {
  auto const place = "tensor '" + printable(entry.name) + "'";
  auto const offsets = "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
  auto const form = std::string(name_of(entry.type)) + " " + shape_text(entry.shape);
  bool const known = entry.type != dtype::other;  // of another type the size of an element is not known
  auto const needed = known ? byte_count(entry.type, entry.shape) : std::optional(entry.end - (std::min)(entry.begin, entry.end));
  if (!needed) refuse(file, place + ": shape", "less than 2^63 bytes", form);
  if (entry.begin > entry.end) refuse(file, place + ": data_offsets", "begin <= end", offsets);
  if (entry.end > data_size) {
    refuse(file, place + ": data_offsets", "an end within the " + std::to_string(data_size) + " bytes of data",
           offsets);
  }
  if (entry.end - entry.begin != *needed) {
    refuse(file, place + ": data_offsets", std::to_string(*needed) + " bytes for " + form,
           offsets + ", " + std::to_string(entry.end - entry.begin) + " bytes");
  }
}

/// Sorts entries by offset and checks that together they cover the data once.
inline void check_layout(std::vector<header_entry>& entries, std::uint64_t data_size, std::string const& file) {
  for (auto const& entry : entries) check_entry(entry, data_size, file);
  std::sort(entries.begin(), entries.end(), [](header_entry const& a, header_entry const& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (auto const& entry : entries) {
    if (entry.begin != covered) {
      refuse(file, "tensor '" + printable(entry.name) + "': data_offsets",
             "to start at byte " + std::to_string(covered) + ", where the tensor before it ends",
             std::to_string(entry.begin) + (entry.begin < covered ? " (overlap)" : " (gap)"));
    }
    covered = entry.end;
  }
  if (covered != data_size) {
    refuse(file, "data", std::to_string(covered) + " bytes, which the tensors cover",
           std::to_string(data_size) + " bytes");
  }
}

/// The whole of reading, from any source: take(n) hands out the next n bytes, and is asked for `size` bytes in all.
template <class Take> tensor_file read_from(Take take, std::uint64_t size, std::string const& file) {
  if (size < length_size) {
    refuse(file, "no safetensors file: size", "at least the 8 bytes of the header length", std::to_string(size) + " bytes");
  }
  std::vector<std::byte> const length_bytes = take(length_size);
  auto const length =
      header_length(std::span<std::byte const, length_size>(length_bytes.data(), length_size), size, file);
  header parts = [&] {
    std::vector<std::byte> const text = take(length);
    return parse_header({reinterpret_cast<char const*>(text.data()), text.size()}, file);
  }();
  check_layout(parts.entries, size - length_size - length, file);
  tensor_file result;
  result.metadata = std::move(parts.metadata);
  for (auto& entry : parts.entries) {
    result.tensors.emplace(std::move(entry.name),
                           tensor{entry.type, std::move(entry.shape), take(entry.end - entry.begin), std::move(entry.other_type)});
  }
  return result;
}

}  // namespace detail

/// Reads a safetensors file that lies in memory; the result owns its bytes.
/// @param contents the whole file. @param file the name that errors carry.
/// @throws file_error naming file, tensor, expected and given, for any departure from the format; nothing else, apart
/// from std::bad_alloc when the machine has not the memory for what is really there.
inline tensor_file parse(std::span<std::byte const> contents, std::string const& file) {
  auto const take = [rest = contents](std::uint64_t count) mutable {
    auto const taken = rest.first(static_cast<std::size_t>(count));
    rest = rest.subspan(taken.size());
    return std::vector<std::byte>(taken.begin(), taken.end());
  };
  return detail::read_from(take, contents.size(), file);
}

/// Reads a safetensors file from disk. Tensors are read straight into place, so the peak is one copy of the file.
/// @throws file_error as parse() does, and for a path that is no regular file, cannot be opened or changes while it is
/// read.
inline tensor_file read(std::filesystem::path const& path) {
  auto const file = path.string();
  std::error_code error;
  auto const status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw file_error(file + ": cannot be opened: " + error.message());
  if (!std::filesystem::is_regular_file(status)) throw file_error(file + ": expected a regular file");
  auto const size = std::filesystem::file_size(path, error);
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream) throw file_error(file + ": cannot be opened: " + std::generic_category().message(errno));
  auto const take = [&](std::uint64_t count) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count));
    stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(count));
    if (!stream) throw file_error(file + ": ended or failed while it was read");
    return bytes;
  };
  auto result = detail::read_from(take, size, file);
  if (stream.peek() != std::ifstream::traits_type::eof()) throw file_error(file + ": grew while it was read");
  return result;
}

}  // namespace palimpsa::io
