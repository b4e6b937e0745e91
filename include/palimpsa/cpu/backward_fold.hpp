#pragma once
/// @file
/// Sums over the value rows that lie in the lanes of packs: a head's dq_j and dk_j from the packs of its rows.

#include <cstdint>
#include <cstring>
#include <utility>

#include "palimpsa/pack.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // packs are always inlined
#endif

namespace palimpsa::cpu {
namespace detail {

/// Lane l of the result: a[l] + a[l ^ H] where bit H of l is 0, b[l] + b[l ^ H] where it is 1.
template <int H, class S, int N, int... L>
PALIMPSA_INLINE pack<S, N> meet(pack<S, N> a, pack<S, N> b, std::integer_sequence<int, L...>) {
  return {__builtin_shufflevector(a.lanes, b.lanes, ((L & H) == 0 ? L : L + N)...) +
          __builtin_shufflevector(a.lanes, b.lanes, ((L & H) == 0 ? L + H : L - H + N)...)};
}

/// Column sums of cells[First], cells[First + Step], ...: N/Step... of them meet in one pack.
template <int H, int First, class S, int N>
PALIMPSA_INLINE pack<S, N> transposed_sum(pack<S, N> const* cells) {
  if constexpr (H == N) {
    return cells[First];
  } else {
    return meet<H>(transposed_sum<2 * H, First>(cells), transposed_sum<2 * H, First + H>(cells),
                   std::make_integer_sequence<int, N>{});
  }
}

}  // namespace detail

/// sums[j] += Σ over the lanes of cells[j], for j < keys. N packs are folded at a time by a transposition that adds as it goes
/// (3 instructions a pack; one horizontal sum a pack took ten times that). The order of a sum is fixed by N: halves first.
template <class S, int N>
void fold_rows(pack<S, N> const* cells, std::int64_t keys, S* sums) {
  std::int64_t j = 0;
  for (; j + N <= keys; j += N) {
    pack<S, N> all;
    std::memcpy(&all, sums + j, sizeof all);
    all = all + detail::transposed_sum<1, 0>(cells + j);
    std::memcpy(sums + j, &all, sizeof all);
  }
  for (; j < keys; ++j) sums[j] += cells[j].sum();
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
