#pragma once
/// @file
/// How q, k, v, out are stored, apart from how the library calculates. Two- and four-byte types of a package become storage by a
/// specialisation (storage_eigen.hpp here, CUDA's own types there); the library never computes in them.

#include "palimpsa/detail/config.hpp"

namespace palimpsa {

/// Storage trait. A specialisation has
///   scalar             the type arithmetic on such tensors uses unless the caller asks for another
///   name               for messages
///   load(x) -> scalar  widens, exactly
///   store(y) -> T      rounds to nearest
template <class T>
struct storage;

/// Four bytes, stored as calculated.
template <>
struct storage<float> {
  using scalar = float;                         ///< arithmetic type
  static constexpr char const* name = "float32";  ///< for messages
  /// Identity.
  PALIMPSA_HD static float load(float x) { return x; }
  /// Identity.
  PALIMPSA_HD static float store(float x) { return x; }
};

/// Eight bytes, stored as calculated.
template <>
struct storage<double> {
  using scalar = double;                        ///< arithmetic type
  static constexpr char const* name = "float64";  ///< for messages
  /// Identity.
  PALIMPSA_HD static double load(double x) { return x; }
  /// Identity.
  PALIMPSA_HD static double store(double x) { return x; }
};

/// A type that q, k, v, out may have.
template <class T>
concept stored = requires(T x, typename storage<T>::scalar y) {
  storage<T>::load(x);
  storage<T>::store(y);
  storage<T>::name;
};

}  // namespace palimpsa
