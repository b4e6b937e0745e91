#pragma once
/// @file
/// What a safetensors file holds: named tensors of a few element types, and metadata strings.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

static_assert(std::endian::native == std::endian::little,
              "palimpsa::io: safetensors files are little-endian and this reader copies bytes as they are");

/// Element types. Numbers are read from the first six and written to them; tensors of the rest pass through as bytes.
enum class dtype { f64, f32, bf16, f16, i64, i32, c64, u64, u32, i16, u16, i8, u8, boolean, f8_e5m2, f8_e4m3, other };

namespace detail {

struct dtype_row {
  dtype type;
  std::string_view name;
  std::size_t item_size;
};

inline constexpr std::array<dtype_row, 17> dtype_table{
    {{dtype::f64, "F64", 8},         {dtype::f32, "F32", 4},         {dtype::bf16, "BF16", 2},
     {dtype::f16, "F16", 2},         {dtype::i64, "I64", 8},         {dtype::i32, "I32", 4},
     {dtype::c64, "C64", 8},         {dtype::u64, "U64", 8},         {dtype::u32, "U32", 4},
     {dtype::i16, "I16", 2},         {dtype::u16, "U16", 2},         {dtype::i8, "I8", 1},
     {dtype::u8, "U8", 1},           {dtype::boolean, "BOOL", 1},    {dtype::f8_e5m2, "F8_E5M2", 1},
     {dtype::f8_e4m3, "F8_E4M3", 1}, {dtype::other, "another type", 1}}};

constexpr dtype_row const& row_of(dtype type) noexcept { return dtype_table[static_cast<std::size_t>(type)]; }

}  // namespace detail

/// The type's name in a file, F64 or BOOL; a tensor of another type keeps the name itself.
constexpr std::string_view name_of(dtype type) noexcept { return detail::row_of(type).name; }

/// Bytes of one element; of another type nothing is known, and 1 is said.
constexpr std::size_t item_size(dtype type) noexcept { return detail::row_of(type).item_size; }

/// The type of that name; `other` for one that is not listed.
constexpr dtype dtype_named(std::string_view name) noexcept {
  for (auto const& row : detail::dtype_table) {
    if (row.name == name && row.type != dtype::other) return row.type;
  }
  return dtype::other;
}

/// One tensor: C order, little-endian, bytes.size() = product of shape x item_size(type); of another type, any number.
struct tensor {
  dtype type = dtype::f32;          ///< of each element
  std::vector<std::int64_t> shape;  ///< extents, none negative
  std::vector<std::byte> bytes;     ///< the elements
  std::string other_type = {};      ///< the type's name in the file, where type is `other`

  /// Same type, shape and bytes.
  friend bool operator==(tensor const&, tensor const&) = default;
};

/// The free text of a file, by key.
using metadata_map = std::map<std::string, std::string, std::less<>>;
/// Tensors by name.
using tensor_map = std::map<std::string, tensor, std::less<>>;

/// All that a safetensors file holds.
struct tensor_file {
  metadata_map metadata;  ///< `__metadata__`
  tensor_map tensors;     ///< everything else

  /// Same metadata and tensors.
  friend bool operator==(tensor_file const&, tensor_file const&) = default;
};

/// Bytes that a tensor of this type and shape takes, or nothing if an extent is negative or if the product of the
/// non-zero extents passes 2^63 - 1 bytes. An empty tensor has to meet this too, so strides of a shape that passed
/// never overflow.
inline std::optional<std::uint64_t> byte_count(dtype type, std::span<std::int64_t const> shape) noexcept {
  constexpr auto largest = static_cast<std::uint64_t>((std::numeric_limits<std::int64_t>::max)());
  std::uint64_t bytes = item_size(type);
  bool empty = false;
  for (auto const extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (bytes > largest / static_cast<std::uint64_t>(extent)) return std::nullopt;
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return empty ? 0 : bytes;
}

/// The name of a tensor's type in its file.
inline std::string type_name(tensor const& x) {
  return x.type == dtype::other ? x.other_type : std::string(name_of(x.type));
}

namespace detail {

inline constexpr std::uint64_t largest_header = 100'000'000;  // bytes; the format's own limit

/// "[1, 20, 4]", cut after eight numbers.
template <class Integer> std::string list_text(std::span<Integer const> numbers) {
  constexpr std::size_t shown = 8;
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size() && i < shown; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  }
  return text + (numbers.size() > shown ? ", ...]" : "]");
}

inline std::string shape_text(std::vector<std::int64_t> const& shape) {
  return list_text(std::span<std::int64_t const>(shape));
}

}  // namespace detail
}  // namespace palimpsa::io
