#pragma once
/// @file
/// Sums over the value rows that lie in the lanes of packs: a head's dq_j and dk_j from the cells of its rows.

#include <cstdint>
#include <cstring>
#include <utility>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/pack.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // packs are always inlined
#endif

namespace palimpsa::inline PALIMPSA_ABI::cpu {
namespace detail {

/// Lane l of the result: a[l] + a[l ^ H] where bit H of l is 0, b[l] + b[l ^ H] where it is 1.
template <int H, class S, int N, int... L>
PALIMPSA_INLINE pack<S, N> meet(pack<S, N> a, pack<S, N> b, std::integer_sequence<int, L...>) {
  return {__builtin_shufflevector(a.lanes, b.lanes, ((L & H) == 0 ? L : L + N)...) +
          __builtin_shufflevector(a.lanes, b.lanes, ((L & H) == 0 ? L + H : L - H + N)...)};
}

/// The sums of 2H cells, in lanes l mod 2H, from H pairs that have met.
template <int H, int First, class S, int N>
PALIMPSA_INLINE pack<S, N> transposed_sum(pack<S, N> const* pairs) {
  if constexpr (H == 1) {
    return pairs[First];
  } else {
    return meet<H>(transposed_sum<H / 2, First>(pairs), transposed_sum<H / 2, First + H / 2>(pairs),
                   std::make_integer_sequence<int, N>{});
  }
}

}  // namespace detail

/// Cells of two keys in one pack: lane l holds a part of the sum of the lanes of `even` or `odd`, as l is.
template <class S, int N>
PALIMPSA_INLINE pack<S, N> meet(pack<S, N> even, pack<S, N> odd) {
  return detail::meet<1>(even, odd, std::make_integer_sequence<int, N>{});
}

/// sums[j] += Σ over the lanes of cell j, j < keys, given pairs of cells that have met. N/2 pairs are folded at a time by a
/// transposition that adds as it goes: with the first step 3 instructions a cell. The order of a sum is fixed by N and K.
template <class S, int N>
void fold_pairs(pack<S, N> const* pairs, int keys, S* sums) {
  int const whole = keys / N * N;
  for (int j = 0; j < whole; j += N) {
    pack<S, N> all;
    std::memcpy(&all, sums + j, sizeof all);
    all = all + detail::transposed_sum<N / 2, 0>(pairs + j / 2);
    std::memcpy(sums + j, &all, sizeof all);
  }
  for (int j = whole; j < keys; ++j) {
    S sum{};
    for (int l = j & 1; l < N; l += 2) sum += pairs[j / 2][l];
    sums[j] += sum;
  }
}

/// The sum of the lanes, in double.
template <class S, int N>
double wide_sum(pack<S, N> const& cells) {
  double x[N];
  for (int i = 0; i < N; ++i) x[i] = static_cast<double>(cells.lanes[i]);
  for (int width = N / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) x[i] += x[i + width];
  return x[0];
}

}  // namespace palimpsa::cpu

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
