#pragma once
/// @file
/// Lanes: who walks the keys. The recurrence is written once over a Lanes value; a loop, a SIMD unit and a warp differ only here.
///
/// A Lanes type has
///   sum<T>(f)        Σ_j f(j) over the keys this caller shares with its fellow lanes; f is called once for every key, in order,
///                    and may update cell j; the sum reaches every lane
///   each(f)          f(j) for every key of this lane
///   reciprocal(x)    1/x, in the accuracy this path promises

#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// One thread that walks all keys. T may be a scalar or a pack of rows.
struct serial_lanes {
  int keys;  ///< K, the number of keys

  /// Σ_j f(j). Four running sums hide the latency of addition (one sum ran Mamba2 at a quarter of the rate);
  /// their order depends on K alone, so that results repeat bit by bit.
  template <class T, class F>
  PALIMPSA_HD PALIMPSA_INLINE T sum(F f) const {
    T a{}, b{}, c{}, d{};
    int j = 0;
    for (; j + 4 <= keys; j += 4) {
      a = a + f(j);
      b = b + f(j + 1);
      c = c + f(j + 2);
      d = d + f(j + 3);
    }
    for (; j < keys; ++j) a = a + f(j);
    return (a + b) + (c + d);
  }

  /// f(j) for every key.
  template <class F>
  PALIMPSA_HD PALIMPSA_INLINE void each(F f) const {
    for (int j = 0; j < keys; ++j) f(j);
  }

  /// 1/x, correctly rounded.
  template <class T>
  PALIMPSA_HD PALIMPSA_INLINE T reciprocal(T x) const {
    return 1 / x;
  }
};

}  // namespace palimpsa
