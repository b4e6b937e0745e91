#pragma once
/// @file
/// The unit a token is taken in. What a token gives to a memory, βk² and u k, may lie in the range of a type while a product on the way
/// does not: with k = 1e20 and β = 1e-20, k² is no float. So a token whose largest key is far from 1 is taken in units of a power of two,
///
///     k̂ = 2⁻ᵉ k     β̂ = 4ᵉ β     û = 2ᵉ u          β̂ k̂² = βk²,  û k̂ = u k,  dk = 2⁻ᵉ dk̂,  dβ = 4ᵉ dβ̂
///
/// which rounds nothing. It is done once a token, and for most tokens not at all.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Whether a weighting says how u grows with β: u = β v (degree 1) or v (degree 0).
template <class Weighting>
inline constexpr bool has_units = requires { Weighting::degree; };

/// The largest |x_j|; no number if one is none. As integers, whose maxima a compiler may take in any order: the chain of comparisons of
/// numbers took Gated DeltaNet at K = V = 64 a tenth of its time.
template <class Scalar>
Scalar largest_size(Scalar const* x, std::int64_t n) {
  using bits = std::conditional_t<sizeof(Scalar) == 4, std::uint32_t, std::uint64_t>;
  bits most[4] = {};
  std::int64_t j = 0;
  for (; j + 4 <= n; j += 4)
    for (int c = 0; c < 4; ++c) most[c] = (std::max)(most[c], std::bit_cast<bits>(x[j + c]) << 1);
  for (; j < n; ++j) most[0] = (std::max)(most[0], std::bit_cast<bits>(x[j]) << 1);
  return std::bit_cast<Scalar>((std::max)((std::max)(most[0], most[1]), (std::max)(most[2], most[3])) >> 1);
}

/// 2⁻ᵉ that brings the largest |k| to the edge of 2^±20; 1 where it lies within, is 0 or is no number. No further than to the edge, and
/// small keys by 2⁴⁰ at most: 4ᵉ β must not vanish in its turn.
template <class Weighting, class Scalar>
Scalar token_unit(Scalar const* key, std::int64_t keys) {
  if constexpr (has_units<Weighting>) {
    Scalar const most = largest_size(key, keys);
    if ((most >= Scalar(0x1p-20) && most <= Scalar(0x1p20)) || !(most > 0) || most - most != 0) return 1;
    int exponent = 0;
    static_cast<void>(std::frexp(most, &exponent));
    exponent = exponent > 0 ? exponent - 20 : exponent + 20;
    constexpr int largest = sizeof(Scalar) == 4 ? 60 : 500;  // 4ᵉ is a number of the type
    exponent = exponent < -40 ? -40 : exponent > largest ? largest : exponent;
    return std::ldexp(Scalar(1), -exponent);
  } else {
    static_cast<void>(key);
    static_cast<void>(keys);
    return 1;
  }
}

/// v̂ ÷ v for a token of this unit.
template <class Weighting, class Scalar>
constexpr Scalar value_unit(Scalar unit) {
  if constexpr (has_units<Weighting>) {
    return Weighting::degree == 1 ? unit : 1 / unit;
  } else {
    return unit;
  }
}

/// β̂ ÷ β.
template <class Scalar>
constexpr Scalar beta_unit(Scalar unit) {
  return 1 / unit / unit;
}

}  // namespace palimpsa::cpu
