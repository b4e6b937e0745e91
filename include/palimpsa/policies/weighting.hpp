#pragma once
/// @file
/// Axis 5, weighting: whether the caller's v already carries its weight.
///
/// A policy is a type with
///   write(beta, v)              u, the weighted value that is written
///   slope_v(beta, v)            ∂u/∂v        (backward pass only)
///   slope_beta(beta, v)         ∂u/∂β        (backward pass only)
/// and, if it likes,
///   excess(beta, v)             β ∂u/∂β - u  (backward pass only); where that is 0 for every β a difference of nearly equal numbers
///                               leaves the gradient of β
///   degree                      1 where u is β v, 0 where it is v: tokens of any size can then be taken in units that keep them in range

#include "palimpsa/detail/config.hpp"
#include "palimpsa/policies/slopes.hpp"

namespace palimpsa::weighting {

/// u = β v: β is the precision of the observation v = S k + noise.
struct likelihood {
  /// u = β v.
  static constexpr int degree = 1;
  /// u = β v.
  template <class T>
  PALIMPSA_HD static T write(T beta, T v) {
    return beta * v;
  }
  /// β.
  template <class T>
  PALIMPSA_HD static T slope_v(T beta, T) {
    return beta;
  }
  /// v.
  template <class T>
  PALIMPSA_HD static T slope_beta(T, T v) {
    return v;
  }
  /// 0.
  template <class T>
  PALIMPSA_HD static T excess(T, T) {
    return T{};
  }
};

/// u = v: the value arrives weighted; β enters the precision and the correction only.
struct preweighted {
  /// u = v.
  static constexpr int degree = 0;
  /// u = v.
  template <class T>
  PALIMPSA_HD static T write(T, T v) {
    return v;
  }
  /// 1.
  template <class T>
  PALIMPSA_HD static T slope_v(T, T) {
    return unit<T>();
  }
  /// 0.
  template <class T>
  PALIMPSA_HD static T slope_beta(T, T) {
    return T{};
  }
  /// -v.
  template <class T>
  PALIMPSA_HD static T excess(T, T v) {
    return -v;
  }
};

}  // namespace palimpsa::weighting
