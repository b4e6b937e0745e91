#pragma once
/// @file
/// Eigen's bfloat16 and half as storage of q, k, v, out. Arithmetic on them is float32.

#include <Eigen/Core>

#include "palimpsa/storage.hpp"

namespace palimpsa {

/// bfloat16: 8 bits of significand, the range of float32.
template <>
struct storage<Eigen::bfloat16> {
  using scalar = float;                          ///< arithmetic type
  static constexpr char const* name = "bfloat16";  ///< for messages
  /// Exact.
  static float load(Eigen::bfloat16 x) { return static_cast<float>(x); }
  /// To nearest, ties to even.
  static Eigen::bfloat16 store(float x) { return Eigen::bfloat16(x); }
};

/// IEEE half: 11 bits of significand, |x| ≤ 65504.
template <>
struct storage<Eigen::half> {
  using scalar = float;                         ///< arithmetic type
  static constexpr char const* name = "float16";  ///< for messages
  /// Exact.
  static float load(Eigen::half x) { return static_cast<float>(x); }
  /// To nearest, ties to even.
  static Eigen::half store(float x) { return Eigen::half(x); }
};

}  // namespace palimpsa
