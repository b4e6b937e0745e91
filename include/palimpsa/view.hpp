#pragma once
/// @file
/// Non-owning views of the caller's memory: any strides, 64-bit, host or device pointers alike.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/detail/size.hpp"
#include "palimpsa/error.hpp"

namespace palimpsa {

/// The strides of a row-major, contiguous tensor.
inline void dense_strides(int rank, std::int64_t const* extent, std::int64_t* stride) {
  std::int64_t step = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    stride[axis] = step;
    step = checked::product(step, extent[axis]);
  }
}

/// A strided tensor of up to four axes that belongs to the caller. A default-constructed view means "absent".
/// Strides count elements; they may be zero or negative where the tensor is only read.
template <class T>
struct view {
  /// The most axes a tensor of the contract has.
  static constexpr int max_rank = 4;

  T* data = nullptr;                     ///< element (0, 0, ...)
  int rank = 0;                          ///< number of axes; 0 = absent
  std::int64_t extent[max_rank] = {};    ///< sizes, rank of them
  std::int64_t stride[max_rank] = {};    ///< steps in elements, rank of them

  /// An absent tensor.
  view() = default;

  /// Row-major and contiguous.
  /// @throws argument_error  for more than four extents
  view(T* pointer, std::initializer_list<std::int64_t> extents) : data(pointer) {
    if (extents.size() > max_rank) throw argument_error("view", "at most 4 extents", std::to_string(extents.size()));
    for (std::int64_t e : extents) extent[rank++] = e;
    dense_strides(rank, extent, stride);
  }

  /// Any strides.
  /// @throws argument_error  for more than four extents, or another number of strides
  view(T* pointer, std::initializer_list<std::int64_t> extents, std::initializer_list<std::int64_t> strides)
      : view(pointer, extents) {
    if (strides.size() != extents.size())
      throw argument_error("view", std::to_string(extents.size()) + " strides, one an extent", std::to_string(strides.size()));
    int axis = 0;
    for (std::int64_t s : strides) stride[axis++] = s;
  }

  /// A writable view reads as well.
  template <class U>
    requires(std::is_same_v<T, U const> && !std::is_same_v<T, U>)
  view(view<U> other) : data(other.data), rank(other.rank) {
    for (int axis = 0; axis < max_rank; ++axis) {
      extent[axis] = other.extent[axis];
      stride[axis] = other.stride[axis];
    }
  }

  /// Whether the caller gave this tensor. An empty one (an extent of 0) is present, whatever its pointer.
  PALIMPSA_HD bool present() const { return rank > 0; }

  /// The address of element (i0, i1, ...); trailing indices may be omitted.
  template <class... I>
  PALIMPSA_HD T* at(I... index) const {
    static_assert(sizeof...(I) <= max_rank, "palimpsa::view: at most four indices");
    std::int64_t const given[] = {static_cast<std::int64_t>(index)..., 0};
    std::int64_t offset = 0;
    for (int axis = 0; axis < static_cast<int>(sizeof...(I)); ++axis) offset += given[axis] * stride[axis];
    return data + offset;
  }

  /// Element (i0, i1, ...).
  template <class... I>
  PALIMPSA_HD T& operator()(I... index) const {
    return *at(index...);
  }
};

/// A list of int32 or int64 numbers that belongs to the caller: sequence boundaries, slot numbers.
/// One axis, or two for slots per token. A default-constructed one means "absent".
struct index_view {
  void const* data = nullptr;       ///< first number
  bool wide = false;                ///< int64 rather than int32
  int rank = 0;                     ///< 0 = absent, 1 or 2
  std::int64_t extent[2] = {0, 1};  ///< sizes
  std::int64_t stride[2] = {1, 1};  ///< steps in elements

  /// An absent list.
  index_view() = default;
  /// n numbers.
  index_view(std::int32_t const* pointer, std::int64_t n) : data(pointer), rank(1), extent{n, 1} {}
  /// n numbers.
  index_view(std::int64_t const* pointer, std::int64_t n) : data(pointer), wide(true), rank(1), extent{n, 1} {}
  /// n × m numbers, row-major.
  index_view(std::int32_t const* pointer, std::int64_t n, std::int64_t m)
      : data(pointer), rank(2), extent{n, m}, stride{m, 1} {}
  /// n × m numbers, row-major.
  index_view(std::int64_t const* pointer, std::int64_t n, std::int64_t m)
      : data(pointer), wide(true), rank(2), extent{n, m}, stride{m, 1} {}

  /// Whether the caller gave this list.
  PALIMPSA_HD bool present() const { return rank > 0; }

  /// Number i (and j).
  PALIMPSA_HD std::int64_t operator()(std::int64_t i, std::int64_t j = 0) const {
    std::int64_t const offset = i * stride[0] + j * stride[1];
    if (wide) return static_cast<std::int64_t const*>(data)[offset];
    return static_cast<std::int32_t const*>(data)[offset];
  }
};

/// The extents of a view as text, "[2, 65, 2, 24]", or "absent".
template <class T>
std::string shape_text(view<T> const& tensor) {
  if (!tensor.present()) return "absent";
  std::string text = "[";
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(tensor.extent[axis]);
  }
  return text + "]";
}

}  // namespace palimpsa
