#pragma once
/// @file
/// Powers of two that keep the products of a chunk in range. A token's key is scaled to k̂ = 2⁻ᵉk with its largest entry in [1, 2), and
///
///     û = 2ᵉ u,   β̂ = 2²ᵉ β    so that    û k̂ᵀ = u kᵀ,   β̂ k̂ k̂ᵀ = β k kᵀ
///
/// and likewise a query, whose power goes to the output. Products of two keys, or of a key and a query, are then at most 4K whatever
/// their lengths, and û and β̂ leave the range only where what they write into the state does. All of it is exact.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "palimpsa/cpu/chunked_products.hpp"
#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// 2ᵉ with most in [2ᵉ, 2ᵉ⁺¹), most > 0; 1 for 0. So far within the range that its inverse is a normal number of the arithmetic.
template <class Scalar>
double power_of(double most) {
  constexpr std::int64_t limit = std::is_same_v<Scalar, float> ? 126 : 1000;
  if (most == 0) return 1;
  auto const exponent = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(most) >> 52 & 0x7ff) - 1023;
  std::int64_t const kept = exponent < -limit ? -limit : exponent > limit ? limit : exponent;
  return std::bit_cast<double>(static_cast<std::uint64_t>(kept + 1023) << 52);
}

/// max |x_j| over whole packs; what is not a number is passed over.
template <class Scalar>
Scalar largest(Scalar const* x, std::int64_t columns) {
  using rows = native_pack<Scalar>;
  typename rows::native most{};
  for (std::int64_t j = 0; j < columns; j += rows::size) {
    auto const one = pack_at(x + j).lanes, minus = -one;
    most = one > most ? one : most;
    most = minus > most ? minus : most;
  }
  Scalar lanes[rows::size];
  for (int i = 0; i < rows::size; ++i) lanes[i] = most[i];
  for (int n = rows::size / 2; n > 0; n /= 2)
    for (int i = 0; i < n; ++i) lanes[i] = lanes[i] < lanes[i + n] ? lanes[i + n] : lanes[i];
  return lanes[0];
}

/// x ← 2⁻ᵉx with its largest entry in [1, 2). @return 2ᵉ
template <class Scalar>
double normalise(Scalar* x, std::int64_t columns) {
  constexpr std::int64_t width = native_pack<Scalar>::size;
  double const power = power_of<Scalar>(static_cast<double>(largest(x, columns)));
  auto const inverse = static_cast<Scalar>(1 / power);
  for (std::int64_t j = 0; j < columns; j += width) put_pack(pack_at(x + j) * inverse, x + j);
  return power;
}

}  // namespace palimpsa::cpu
