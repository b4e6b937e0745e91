#pragma once
/// @file
/// Two axes of a caller's tensor: the tokens of one head, or the state of one head. Host and device.

#include <cstdint>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/policies/forget.hpp"
#include "palimpsa/shape.hpp"
#include "palimpsa/view.hpp"

namespace palimpsa {

/// Two axes of a caller's tensor: [tokens, channels] or [rows, columns]. data = nullptr means absent, or that there is no element
/// (an offset from a null pointer is undefined, even to nothing).
template <class T>
struct plane {
  T* data = nullptr;      ///< element (0, 0)
  std::int64_t row = 0;   ///< step from one row to the next, in elements
  std::int64_t column = 0;  ///< step along a row, in elements

  /// Element (i, j).
  PALIMPSA_HD T& operator()(std::int64_t i, std::int64_t j) const { return data[i * row + j * column]; }
  /// Whether there is anything to read or write.
  PALIMPSA_HD bool present() const { return data != nullptr; }
};

/// Tokens of one head: [T, channels] from a [B,T,H,C] tensor; a missing channel axis is repeated (step 0).
template <class T>
PALIMPSA_HD plane<T> tokens_of(view<T> const& tensor, segment s, std::int64_t head) {
  if (tensor.data == nullptr) return {};
  return {tensor.at(s.row, s.first, head), tensor.stride[1], tensor.rank > 3 ? tensor.stride[3] : 0};
}

/// The gates of one head: [T, 1 or K]; a constant gate is the same for every token (step 0).
template <class Forget, class T>
PALIMPSA_HD plane<T> gates_of(view<T> const& log_decay, segment s, std::int64_t head) {
  if (log_decay.data == nullptr) return {};
  if constexpr (Forget::scope == gate_scope::constant) {
    return {log_decay.at(head), 0, 0};
  } else {
    return tokens_of(log_decay, s, head);
  }
}

/// The matrix of one head from a [N,HV,rows,columns] tensor of states.
template <class T>
PALIMPSA_HD plane<T> state_of(view<T> const& tensor, std::int64_t n, std::int64_t head) {
  if (tensor.data == nullptr) return {};
  return {tensor.at(n, head), tensor.stride[2], tensor.stride[3]};
}

/// The prior of one head: [1 or K] in row 0.
template <class T>
PALIMPSA_HD plane<T> prior_of(view<T> const& prior, std::int64_t head) {
  if (prior.data == nullptr) return {};
  return {prior.at(head), 0, prior.rank > 1 ? prior.stride[1] : 0};
}

}  // namespace palimpsa
