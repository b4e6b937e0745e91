#pragma once
/// @file
/// Lanes: who walks the keys. The recurrence is written once over a Lanes value; a loop, a SIMD unit and a warp differ only here.
///
/// A Lanes type has
///   sum<T>(f)        f(j, s) returns s and the term of key j, for every key this caller shares with its fellow lanes, once and in order;
///                    it may update cell j. What all keys make of T{} reaches every lane. (f adds by itself, since a product meets
///                    its sum in fused() and nowhere else.)
///   each(f)          f(j) for every key of this lane
///   reciprocal(x)    1/x, in the accuracy this path promises
/// and, where memory is cheaper than arithmetic,
///   spare            room for one value of T a key, which a write may use as it likes

#include <type_traits>

#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// One thread that walks all keys. T may be a scalar or a pack of rows.
struct serial_lanes {
  int keys;  ///< K, the number of keys

  /// Σ_j by f(j, s). Four running sums hide the latency of addition (one sum ran Mamba2 at a quarter of the rate);
  /// their order depends on K alone, so that results repeat bit by bit.
  template <class T, class F>
  PALIMPSA_HD PALIMPSA_INLINE T sum(F f) const {
    T a{}, b{}, c{}, d{};
    int j = 0;
    for (; j + 4 <= keys; j += 4) {
      a = f(j, a);
      b = f(j + 1, b);
      c = f(j + 2, c);
      d = f(j + 3, d);
    }
    for (; j < keys; ++j) a = f(j, a);
    return (a + b) + (c + d);
  }

  /// f(j) for every key.
  template <class F>
  PALIMPSA_HD PALIMPSA_INLINE void each(F f) const {
    for (int j = 0; j < keys; ++j) f(j);
  }

  /// 1/x: a number correctly rounded, a pack as pack.hpp says.
  template <class T>
  PALIMPSA_HD PALIMPSA_INLINE T reciprocal(T x) const {
    if constexpr (std::is_class_v<T>) {
      return inverse(x);
    } else {
      return 1 / x;
    }
  }
};

/// The same, with room for one value a key.
template <class T>
struct sparing_lanes : serial_lanes {
  T* spare;  ///< [K]
};

}  // namespace palimpsa
