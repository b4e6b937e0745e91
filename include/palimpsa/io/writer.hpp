#pragma once
/// @file
/// Writes safetensors, whole or not at all.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/file_error.hpp"
#include "palimpsa/io/tensor.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {
namespace detail {

inline std::size_t width(dtype type) { return type == dtype::other ? 0 : item_size(type); }

/// Tensors in the order their bytes are written: wide elements first, those of unknown size last, then by name. The data starts at a multiple of 8,
/// so every tensor is aligned for its type.
inline std::vector<tensor_map::const_pointer> write_order(tensor_map const& tensors) {
  std::vector<tensor_map::const_pointer> order;
  for (auto const& entry : tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(),
                   [](auto const* a, auto const* b) { return width(a->second.type) > width(b->second.type); });
  return order;
}

inline void check_tensor(std::string const& name, tensor const& written, std::string const& file) {
  auto const place = "tensor '" + printable(name) + "'";
  if (name == "__metadata__") refuse(file, place, "another name: the format keeps this one for its metadata", "it");
  if (written.type == dtype::other) return;
  auto const needed = byte_count(written.type, written.shape);
  if (!needed || *needed != written.bytes.size()) {
    refuse(file, place,
           (needed ? std::to_string(*needed) : "less than 2^63") + " bytes for " + std::string(name_of(written.type)) +
               " " + shape_text(written.shape),
           std::to_string(written.bytes.size()));
  }
}

/// Header length and header, padded with spaces to a multiple of 8.
inline std::string header_bytes(tensor_file const& contents, std::string const& file) {
  nlohmann::json root = nlohmann::json::object();  // keys in order of name; offsets say where the bytes are
  if (!contents.metadata.empty()) root["__metadata__"] = contents.metadata;
  std::uint64_t offset = 0;
  for (auto const* entry : write_order(contents.tensors)) {
    auto const& [name, written] = *entry;
    check_tensor(name, written, file);
    root[name] = {{"dtype", type_name(written)},
                  {"shape", written.shape},
                  {"data_offsets", {offset, offset + written.bytes.size()}}};
    offset += written.bytes.size();
  }
  std::string text;
  try {
    text = root.dump();
  } catch (nlohmann::json::exception const&) {
    refuse(file, "header", "names and metadata in UTF-8", "other bytes");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > largest_header) {
    refuse(file, "header length", "at most " + std::to_string(largest_header), std::to_string(text.size()));
  }
  std::uint64_t const length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + text;
}

inline std::string last_error() { return std::generic_category().message(errno); }

/// A file under a name of its own beside the target, which takes the target's name when it is complete, and goes when
/// not.
class partial_file {
 public:
  explicit partial_file(std::filesystem::path target) : target_(std::move(target)) {
    std::random_device random;
    for (int attempt = 0; attempt < 16 && stream_ == nullptr; ++attempt) {
      path_ = target_.parent_path() / (".palimpsa-" + std::to_string(random()) + ".partial");
      stream_ = std::fopen(path_.string().c_str(), "wbx");  // x: never through a file or link that is already there
      if (stream_ == nullptr && errno != EEXIST) break;
    }
    if (stream_ == nullptr) throw file_error(target_.string() + ": cannot be written: " + last_error());
  }
  partial_file(partial_file const&) = delete;
  partial_file& operator=(partial_file const&) = delete;
  ~partial_file() {
    if (stream_ != nullptr) std::fclose(stream_);
    std::error_code ignored;
    if (!complete_) std::filesystem::remove(path_, ignored);
  }

  void append(std::span<std::byte const> bytes) {
    if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), stream_) != bytes.size()) fail();
  }

  void commit() {
    auto* const stream = std::exchange(stream_, nullptr);
    if (std::fclose(stream) != 0) fail();
    std::error_code error;
    std::filesystem::rename(path_, target_, error);
    if (error) throw file_error(target_.string() + ": cannot be written: " + error.message());
    complete_ = true;
  }

 private:
  [[noreturn]] void fail() const { throw file_error(target_.string() + ": cannot be written: " + last_error()); }

  std::filesystem::path target_;
  std::filesystem::path path_;
  std::FILE* stream_ = nullptr;
  bool complete_ = false;
};

/// Where the bytes go: behind a link, and never in the place of a device or directory, which a rename would replace.
inline std::filesystem::path write_target(std::filesystem::path const& path) {
  std::error_code error;
  auto target = path;
  if (std::filesystem::is_symlink(path, error)) {
    target = std::filesystem::canonical(path, error);
    if (error) throw file_error(path.string() + ": cannot be written: " + error.message());
  }
  auto const status = std::filesystem::status(target, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw file_error(path.string() + ": expected a regular file, or none yet");
  }
  return target;
}

}  // namespace detail

/// The file as bytes in memory. @param file the name that errors carry.
/// @throws file_error for a tensor whose bytes do not fit its shape, and for names or metadata that are not UTF-8.
inline std::vector<std::byte> serialize(tensor_file const& contents, std::string const& file) {
  auto const header = detail::header_bytes(contents, file);
  auto const view = std::as_bytes(std::span<char const>(header));
  std::vector<std::byte> bytes(view.begin(), view.end());
  for (auto const* entry : detail::write_order(contents.tensors)) {
    bytes.insert(bytes.end(), entry->second.bytes.begin(), entry->second.bytes.end());
  }
  return bytes;
}

/// Writes a safetensors file. A reader sees the old file or the whole new one; after an error the old one is as it was.
/// @throws file_error as serialize() does, and for a path that is no regular file, cannot be created, or a full disk.
inline void write(std::filesystem::path const& path, tensor_file const& contents) {
  auto const header = detail::header_bytes(contents, path.string());
  detail::partial_file partial(detail::write_target(path));
  partial.append(std::as_bytes(std::span<char const>(header)));
  for (auto const* entry : detail::write_order(contents.tensors)) partial.append(entry->second.bytes);
  partial.commit();
}

/// The same, from its two parts.
inline void write(std::filesystem::path const& path, metadata_map metadata, tensor_map tensors) {
  write(path, tensor_file{std::move(metadata), std::move(tensors)});
}

}  // namespace palimpsa::io
