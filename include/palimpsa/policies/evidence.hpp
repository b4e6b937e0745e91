#pragma once
/// @file
/// Axis 2, evidence: what the correction of the mean sees of k kᵀ. The write subtracts β c_j from u, and c_j is this policy's.
///
/// A policy is a type with
///   sees_all                    whether it needs k·m, a sum over the keys (costs one reduction per row)
///   seen(own, all)              c_j from own = k_j m_j and all = k·m
///   slope(own, all)             {∂c_j/∂own, ∂c_j/∂all}, used by the backward pass only
/// elementwise.hpp has comparisons, select, minimum, maximum and exp for them.

#include "palimpsa/detail/config.hpp"
#include "palimpsa/policies/slopes.hpp"

namespace palimpsa::evidence {

/// c_j = 0: the write adds, it never corrects.
struct nothing {
  /// Whether k·m is needed.
  static constexpr bool sees_all = false;
  /// c_j = 0.
  template <class T>
  PALIMPSA_HD static constexpr T seen(T, T) {
    return T{};
  }
  /// Both zero.
  template <class T>
  PALIMPSA_HD static constexpr slopes<T> slope(T, T) {
    return {T{}, T{}};
  }
};

/// c_j = k_j m_j: every cell sees its own share of the prediction; the cross terms of k kᵀ are dropped.
struct diagonal {
  /// Whether k·m is needed.
  static constexpr bool sees_all = false;
  /// c_j = k_j m_j.
  template <class T>
  PALIMPSA_HD static constexpr T seen(T own, T) {
    return own;
  }
  /// {1, 0}.
  template <class T>
  PALIMPSA_HD static constexpr slopes<T> slope(T, T) {
    return {unit<T>(), T{}};
  }
};

/// c_j = k·m: every cell sees the error of the whole prediction.
struct full {
  /// Whether k·m is needed.
  static constexpr bool sees_all = true;
  /// c_j = k·m.
  template <class T>
  PALIMPSA_HD static constexpr T seen(T, T all) {
    return all;
  }
  /// {0, 1}.
  template <class T>
  PALIMPSA_HD static constexpr slopes<T> slope(T, T) {
    return {T{}, unit<T>()};
  }
};

}  // namespace palimpsa::evidence
