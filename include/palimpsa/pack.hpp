#pragma once
/// @file
/// A pack: the same cell of N value rows, side by side in a vector register. The recurrence takes it wherever it takes a scalar,
/// so that rows of a head run abreast without a word about SIMD in the equations.

#include <cstddef>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/elementwise.hpp"

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

  /// x in every lane.
  PALIMPSA_INLINE static pack broadcast(S x) { return {native{} + x}; }

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

/// The pack that fills one vector register: 16 floats or 8 doubles with AVX-512, half of it with AVX, 4 or 2 without.
template <class S>
using native_pack = pack<S, static_cast<int>(vector_bytes / sizeof(S))>;

}  // namespace palimpsa

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
