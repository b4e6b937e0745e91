#pragma once
/// @file
/// Axis 3, gain: how far a cell moves towards what was observed. The write is μ_j = m_j + s_j (k_j/R_j)(u - β c_j), and s_j is this policy's.
///
/// A policy is a type with
///   sees_all                    whether it needs β kᵀR⁻¹k, a sum over the keys
///   at(lanes, own, all)         s_j from own = β k_j²/R_j and all = β kᵀR⁻¹k, both ≥ 0; lanes.reciprocal(x) divides
///   slope(lanes, own, all)      {∂s_j/∂own, ∂s_j/∂all}, used by the backward pass only
/// elementwise.hpp has comparisons, select, minimum, maximum and exp for them.

#include "palimpsa/detail/config.hpp"
#include "palimpsa/policies/slopes.hpp"

namespace palimpsa::gain {

/// s_j = 1: one explicit gradient step of size β/R.
struct plain {
  /// Whether β kᵀR⁻¹k is needed.
  static constexpr bool sees_all = false;
  /// s_j = 1.
  template <class Lanes, class T>
  PALIMPSA_HD static constexpr T at(Lanes, T, T) {
    return unit<T>();
  }
  /// Both zero.
  template <class Lanes, class T>
  PALIMPSA_HD static constexpr slopes<T> slope(Lanes, T, T) {
    return {T{}, T{}};
  }
};

/// s_j = 1/(1 + β k_j²/R_j): the exact step of a cell that stands alone; with diagonal evidence it is the write of Palimpsa.
struct elementwise {
  /// Whether β kᵀR⁻¹k is needed.
  static constexpr bool sees_all = false;
  /// s_j = 1/(1 + own).
  template <class Lanes, class T>
  PALIMPSA_HD static constexpr T at(Lanes lanes, T own, T) {
    return lanes.reciprocal(1 + own);
  }
  /// {-s², 0}.
  template <class Lanes, class T>
  PALIMPSA_HD static constexpr slopes<T> slope(Lanes lanes, T own, T) {
    T const s = lanes.reciprocal(1 + own);
    return {-(s * s), T{}};
  }
};

/// s_j = 1/(1 + β kᵀR⁻¹k): the exact (implicit) step of the whole row, Kalman's gain.
struct exact {
  /// Whether β kᵀR⁻¹k is needed.
  static constexpr bool sees_all = true;
  /// s_j = 1/(1 + all).
  template <class Lanes, class T>
  PALIMPSA_HD static constexpr T at(Lanes lanes, T, T all) {
    return lanes.reciprocal(1 + all);
  }
  /// {0, -s²}.
  template <class Lanes, class T>
  PALIMPSA_HD static constexpr slopes<T> slope(Lanes lanes, T, T all) {
    T const s = lanes.reciprocal(1 + all);
    return {T{}, -(s * s)};
  }
};

}  // namespace palimpsa::gain
