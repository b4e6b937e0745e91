#pragma once
/// @file
/// What is asked of any one tensor: its shape, memory behind it, sizes that some memory could hold, elements apart where it is written.

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/detail/size.hpp"
#include "palimpsa/error.hpp"
#include "palimpsa/overlap.hpp"
#include "palimpsa/view.hpp"

namespace palimpsa::inline PALIMPSA_ABI::detail {

inline std::string extents_text(std::int64_t const* first, std::int64_t const* end) {
  std::string text = "[";
  for (std::int64_t const* e = first; e != end; ++e) text += (e == first ? "" : ", ") + std::to_string(*e);
  return text + "]";
}
inline std::string extents_text(std::initializer_list<std::int64_t> extents) { return extents_text(extents.begin(), extents.end()); }
inline std::string list_text(index_view const& list) { return extents_text(list.extent, list.extent + list.rank); }

/// A number as a reader would write it: std::to_string shows 1e-9 as zero.
inline std::string number_text(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

template <class T>
bool has_extents(view<T> const& tensor, std::initializer_list<std::int64_t> extents) {
  if (tensor.rank != static_cast<int>(extents.size())) return false;
  int axis = 0;
  for (std::int64_t e : extents)
    if (tensor.extent[axis++] != e) return false;
  return true;
}

/// Elements of a tensor; what wraps stays above any limit.
template <class T>
std::int64_t element_count(view<T> const& tensor) {
  std::int64_t n = 1;
  for (int axis = 0; axis < tensor.rank; ++axis) n = checked::product(n, tensor.extent[axis]);
  return n;
}

/// Steps from one end of some axes to the other.
inline std::int64_t reach_of(int rank, std::int64_t const* extent, std::int64_t const* stride) {
  std::int64_t all = 0;
  for (int axis = 0; axis < rank; ++axis)
    all = checked::sum(all, checked::product(extent[axis] - 1, checked::magnitude(stride[axis])));
  return all;
}

/// Refuses sizes and strides that leave every memory, and 63 bits perhaps.
inline void require_reach(char const* name, int rank, std::int64_t const* extent, std::int64_t const* stride) {
  if (reach_of(rank, extent, stride) > checked::most)
    throw argument_error(name, "strides that reach at most 2^56 elements far",
                         "strides " + extents_text(stride, stride + rank) + " over " + extents_text(extent, extent + rank));
}

/// Sizes that some memory could hold, and a pointer wherever an element is.
template <class T>
void require_memory(char const* name, view<T> const& tensor) {
  std::int64_t const count = element_count(tensor);
  if (count == 0) return;
  if (count > checked::most) throw argument_error(name, "at most 2^56 elements", shape_text(tensor));
  if (tensor.data == nullptr) throw argument_error(name, "a pointer to " + std::to_string(count) + " elements", "a null pointer");
  require_reach(name, tensor.rank, tensor.extent, tensor.stride);
}

/// The same of a list of whole numbers.
inline void require_list(char const* name, index_view const& list) {
  std::int64_t const count = checked::product(list.extent[0], list.rank > 1 ? list.extent[1] : 1);
  if (count == 0) return;
  if (count > checked::most) throw argument_error(name, "at most 2^56 numbers", list_text(list));
  if (list.data == nullptr) throw argument_error(name, "a pointer", "a null pointer");
  require_reach(name, list.rank, list.extent, list.stride);
}

/// An input: shape `extents` (`symbols` says it in letters), memory behind it. A hint follows what was given.
template <class T>
void require(char const* name, view<T> const& tensor, char const* symbols, std::initializer_list<std::int64_t> extents,
             std::string const& hint = {}) {
  if (!has_extents(tensor, extents))
    throw argument_error(name, std::string(symbols) + " = " + extents_text(extents), shape_text(tensor) + hint);
  require_memory(name, tensor);
}

/// Refuses strides under which elements of a written tensor share memory.
template <class T>
void require_apart(char const* name, view<T> const& tensor) {
  if (element_count(tensor) == 0) return;
  for (int axis = 0; axis < tensor.rank; ++axis)
    if (tensor.stride[axis] == 0 && tensor.extent[axis] > 1)
      throw argument_error(name, "a stride other than 0 along axis " + std::to_string(axis) + ", since it is written",
                           "stride 0");
  overlap_answer const answer = find_overlap(tensor);
  if (answer.kind == overlap::none) return;
  auto const text = [&](std::int64_t const* list) { return extents_text(list, list + tensor.rank); };
  std::string const strides = "strides " + text(tensor.stride) + " over " + shape_text(tensor);
  if (answer.kind == overlap::undecided)
    throw argument_error(name, "strides that keep its elements apart, as a search of 2^20 steps can tell, since it is written", strides);
  throw argument_error(name, "strides that keep its elements apart, since it is written",
                       strides + ": elements " + text(answer.first) + " and " + text(answer.second) + " are one");
}

/// An output: as an input, and no two of its elements may share memory.
template <class T>
void require_writable(char const* name, view<T> const& tensor, char const* symbols,
                      std::initializer_list<std::int64_t> extents) {
  require(name, tensor, symbols, extents);
  require_apart(name, tensor);
}

}  // namespace palimpsa
