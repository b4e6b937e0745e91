#pragma once
/// @file
/// A pack: the same cell of N value rows, side by side in a vector register. The recurrence takes it wherever it takes a scalar,
/// so that rows of a head run abreast without a word about SIMD in the equations.

#include <cstddef>
#include <type_traits>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/elementwise.hpp"
#include "palimpsa/fused.hpp"

#if defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // packs are always inlined: how a call would pass them does not matter
#endif

namespace palimpsa::inline PALIMPSA_ABI {

/// Bytes of the widest vector register the translation unit is compiled for.
inline constexpr std::size_t vector_bytes = PALIMPSA_VECTOR_BYTES;

template <class S, int N>
struct pack;

/// A truth a lane: what comparing packs gives. For select().
template <class S, int N>
struct pack_truth : detail::truth_a_row {
  using native = decltype(typename pack<S, N>::native{} < typename pack<S, N>::native{});  ///< integers, all bits or none
  native lanes;  ///< the answers

  /// x where it holds, y elsewhere.
  PALIMPSA_INLINE pack<S, N> choose(pack<S, N> x, pack<S, N> y) const { return {lanes ? x.lanes : y.lanes}; }
};

/// N scalars of type S with lane-wise arithmetic. Aligned to its size; N·sizeof(S) is a power of two.
template <class S, int N>
struct pack {
  using native __attribute__((vector_size(N * sizeof(S)))) = S;  ///< the compiler's vector type
  using scalar = S;  ///< one row
  using truth = pack_truth<S, N>;  ///< of a comparison
  native lanes;  ///< the values

  /// Number of rows.
  static constexpr int size = N;

  /// x in every lane (x - 0 is x, whatever its sign: the compiler drops the subtraction).
  PALIMPSA_INLINE static pack broadcast(S x) { return {x - native{}}; }

  /// @{
  /// Lane by lane; a scalar stands for a pack of it.
  PALIMPSA_INLINE friend pack operator+(pack a, pack b) { return {a.lanes + b.lanes}; }
  PALIMPSA_INLINE friend pack operator-(pack a, pack b) { return {a.lanes - b.lanes}; }
  PALIMPSA_INLINE friend pack operator*(pack a, pack b) { return {a.lanes * b.lanes}; }
  PALIMPSA_INLINE friend pack operator/(pack a, pack b) { return {a.lanes / b.lanes}; }
  PALIMPSA_INLINE friend pack operator+(pack a, S b) { return {a.lanes + b}; }
  PALIMPSA_INLINE friend pack operator+(S a, pack b) { return {a + b.lanes}; }
  PALIMPSA_INLINE friend pack operator-(pack a, S b) { return {a.lanes - b}; }
  PALIMPSA_INLINE friend pack operator-(S a, pack b) { return {a - b.lanes}; }
  PALIMPSA_INLINE friend pack operator*(S a, pack b) { return {a * b.lanes}; }
  PALIMPSA_INLINE friend pack operator*(pack a, S b) { return {a.lanes * b}; }
  PALIMPSA_INLINE friend pack operator/(pack a, S b) { return {a.lanes / b}; }
  PALIMPSA_INLINE friend pack operator/(S a, pack b) { return {a / b.lanes}; }
  PALIMPSA_INLINE friend pack operator-(pack a) { return {-a.lanes}; }
  PALIMPSA_INLINE friend truth operator<(pack a, pack b) { return {{}, a.lanes < b.lanes}; }
  PALIMPSA_INLINE friend truth operator<=(pack a, pack b) { return {{}, a.lanes <= b.lanes}; }
  PALIMPSA_INLINE friend truth operator<(pack a, S b) { return a < broadcast(b); }
  PALIMPSA_INLINE friend truth operator<(S a, pack b) { return broadcast(a) < b; }
  PALIMPSA_INLINE friend truth operator<=(pack a, S b) { return a <= broadcast(b); }
  PALIMPSA_INLINE friend truth operator<=(S a, pack b) { return broadcast(a) <= b; }
  PALIMPSA_INLINE friend truth operator>(pack a, pack b) { return b < a; }
  PALIMPSA_INLINE friend truth operator>(pack a, S b) { return b < a; }
  PALIMPSA_INLINE friend truth operator>(S a, pack b) { return b < a; }
  PALIMPSA_INLINE friend truth operator>=(pack a, pack b) { return b <= a; }
  PALIMPSA_INLINE friend truth operator>=(pack a, S b) { return b <= a; }
  PALIMPSA_INLINE friend truth operator>=(S a, pack b) { return b <= a; }
  /// @}

  /// f of every lane.
  template <class F>
  PALIMPSA_INLINE pack map(F f) const {
    pack r = *this;
    for (int i = 0; i < N; ++i) r.lanes[i] = f(lanes[i]);
    return r;
  }

  /// Lane i, to read.
  PALIMPSA_INLINE S operator[](int i) const { return lanes[i]; }
  /// Writes x to lane i.
  PALIMPSA_INLINE void set(int i, S x) { lanes[i] = x; }
  /// The sum of the lanes, halves first: the order depends on N alone.
  PALIMPSA_INLINE S sum() const {
    S x[N];
    for (int i = 0; i < N; ++i) x[i] = lanes[i];
    for (int width = N / 2; width > 0; width /= 2)
      for (int i = 0; i < width; ++i) x[i] += x[i + width];
    return x[0];
  }
};

/// a·b + c, lane by lane, in one rounding where the target fuses: see fused.hpp. The instruction is named where there is one, since a
/// compiler that is told to contract nothing would make a call of every lane.
template <class S, int N>
PALIMPSA_INLINE pack<S, N> multiply_add(pack<S, N> a, pack<S, N> b, pack<S, N> c) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<S, float> && N == 16) return {_mm512_fmadd_ps(a.lanes, b.lanes, c.lanes)};
  if constexpr (std::is_same_v<S, double> && N == 8) return {_mm512_fmadd_pd(a.lanes, b.lanes, c.lanes)};
#endif
#if defined(__FMA__)
  if constexpr (std::is_same_v<S, float> && N == 8) return {_mm256_fmadd_ps(a.lanes, b.lanes, c.lanes)};
  if constexpr (std::is_same_v<S, double> && N == 4) return {_mm256_fmadd_pd(a.lanes, b.lanes, c.lanes)};
  if constexpr (std::is_same_v<S, float> && N == 4) return {_mm_fmadd_ps(a.lanes, b.lanes, c.lanes)};
  if constexpr (std::is_same_v<S, double> && N == 2) return {_mm_fmadd_pd(a.lanes, b.lanes, c.lanes)};
#endif
#if PALIMPSA_FUSES
  pack<S, N> sum;
  for (int i = 0; i < N; ++i) sum.lanes[i] = detail::multiply_add(a.lanes[i], b.lanes[i], c.lanes[i]);
  return sum;
#else
  return {a.lanes * b.lanes + c.lanes};
#endif
}

/// 1/x, lane by lane. With AVX-512 from 14 bits by Newton's steps, one in float and two in double: within 0.53 of a unit in the last
/// place where x and 1/x are normal, no number where x is 0 or infinite; since divisions bind on some cores (Sapphire Rapids: Palimpsa's
/// loop 6.1 against 4.2 G elements/s; Zen 4: 6.2 against 6.6). Otherwise by division, correctly rounded.
template <class S, int N>
PALIMPSA_INLINE pack<S, N> inverse(pack<S, N> x) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<S, float> && N == 16) {
    // (masked in full: the plain intrinsic of g++ 12 warns of a register it leaves uninitialised on purpose)
    pack<S, N> const near{_mm512_maskz_rcp14_ps(0xffff, x.lanes)};
    return multiply_add(near, multiply_add(-x, near, pack<S, N>::broadcast(S(1))), near);
  }
  if constexpr (std::is_same_v<S, double> && N == 8) {
    pack<S, N> const one = pack<S, N>::broadcast(S(1));
    pack<S, N> near{_mm512_maskz_rcp14_pd(0xff, x.lanes)};
    near = multiply_add(near, multiply_add(-x, near, one), near);
    return multiply_add(near, multiply_add(-x, near, one), near);
  }
#endif
  return {S(1) / x.lanes};
}

/// The pack that fills one vector register: 16 floats or 8 doubles with AVX-512, half of it with AVX, 4 or 2 without.
template <class S>
using native_pack = pack<S, static_cast<int>(vector_bytes / sizeof(S))>;

}  // namespace palimpsa

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
