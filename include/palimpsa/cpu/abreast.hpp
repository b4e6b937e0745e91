#pragma once
/// @file
/// A few keys at a time. Where keys do not see one another (Rule::adds), a group of them goes through a run of tokens together, its
/// cells in registers.

#include "palimpsa/detail/config.hpp"
#include "palimpsa/lanes.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Keys of a group: their η, and J where it is kept, fill half of the registers that AVX-512 has.
template <class Rule>
inline constexpr int keys_abreast = Rule::keeps_diagonal ? 8 : 16;

/// As many keys as the compiler knows, in one chain of sums: tokens overlap, so that its latency is hidden.
template <int Keys>
struct abreast_lanes {
  /// What all keys make of T{}, in order.
  template <class T, class F>
  PALIMPSA_INLINE T sum(F f) const {
    T s{};
    for (int j = 0; j < Keys; ++j) s = f(j, s);
    return s;
  }
  /// f(j) for every key.
  template <class F>
  PALIMPSA_INLINE void each(F f) const {
    for (int j = 0; j < Keys; ++j) f(j);
  }
  /// As serial_lanes::reciprocal.
  template <class T>
  PALIMPSA_INLINE T reciprocal(T x) const {
    return serial_lanes{Keys}.reciprocal(x);
  }
};

}  // namespace palimpsa::cpu
