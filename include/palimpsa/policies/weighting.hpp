#pragma once
/// @file
/// Axis 5, weighting: whether the caller's v already carries its weight.
///
/// A policy is a type with
///   write(beta, v)              u, the weighted value that is written
///   slope_v(beta, v)            ∂u/∂v        (backward pass only)
///   slope_beta(beta, v)         ∂u/∂β        (backward pass only)

#include "palimpsa/detail/config.hpp"
#include "palimpsa/policies/slopes.hpp"

namespace palimpsa::weighting {

/// u = β v: β is the precision of the observation v = S k + noise.
struct likelihood {
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
};

/// u = v: the value arrives weighted; β enters the precision and the correction only.
struct preweighted {
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
};

}  // namespace palimpsa::weighting
