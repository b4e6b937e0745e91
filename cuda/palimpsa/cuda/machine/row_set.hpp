#pragma once
/// @file
/// A few value rows in one thread's registers: what a pack is to the CPU's vector unit. Every operation is lane-wise and unrolled,
/// so that keys and queries loaded once serve all rows of the thread. Host and device.

#include "palimpsa/detail/config.hpp"
#include "palimpsa/elementwise.hpp"
#include "palimpsa/fused.hpp"

namespace palimpsa::cuda {

/// A truth a row: what comparing row sets gives. For select().
template <int N>
struct row_truth : palimpsa::detail::truth_a_row {
  bool row[N];  ///< the answers

  /// x where it holds, y elsewhere.
  template <class Rows>
  PALIMPSA_HD PALIMPSA_INLINE constexpr Rows choose(Rows x, Rows y) const {
    for (int i = 0; i < N; ++i) x.row[i] = row[i] ? x.row[i] : y.row[i];
    return x;
  }
};

/// N scalars with lane-wise arithmetic.
template <class S, int N>
struct row_set {
  using scalar = S;  ///< one row
  S row[N];  ///< the values, one a row

  /// x in every row.
  PALIMPSA_HD static constexpr row_set broadcast(S x) {
    row_set r{};
    for (int i = 0; i < N; ++i) r.row[i] = x;
    return r;
  }

  /// @cond
#define PALIMPSA_ROW_SET_OPERATOR(op)                                                        \
  PALIMPSA_HD PALIMPSA_INLINE friend constexpr row_set operator op(row_set a, row_set b) {   \
    for (int i = 0; i < N; ++i) a.row[i] = a.row[i] op b.row[i];                             \
    return a;                                                                                \
  }                                                                                          \
  PALIMPSA_HD PALIMPSA_INLINE friend constexpr row_set operator op(row_set a, S b) {         \
    for (int i = 0; i < N; ++i) a.row[i] = a.row[i] op b;                                    \
    return a;                                                                                \
  }                                                                                          \
  PALIMPSA_HD PALIMPSA_INLINE friend constexpr row_set operator op(S a, row_set b) {         \
    for (int i = 0; i < N; ++i) b.row[i] = a op b.row[i];                                    \
    return b;                                                                                \
  }
  PALIMPSA_ROW_SET_OPERATOR(+)
  PALIMPSA_ROW_SET_OPERATOR(-)
  PALIMPSA_ROW_SET_OPERATOR(*)
  PALIMPSA_ROW_SET_OPERATOR(/)
#undef PALIMPSA_ROW_SET_OPERATOR
#define PALIMPSA_ROW_SET_COMPARISON(op)                                                        \
  PALIMPSA_HD PALIMPSA_INLINE friend constexpr row_truth<N> operator op(row_set a, row_set b) { \
    row_truth<N> t{};                                                                          \
    for (int i = 0; i < N; ++i) t.row[i] = a.row[i] op b.row[i];                               \
    return t;                                                                                  \
  }                                                                                            \
  PALIMPSA_HD PALIMPSA_INLINE friend constexpr row_truth<N> operator op(row_set a, S b) {      \
    return a op broadcast(b);                                                                  \
  }                                                                                            \
  PALIMPSA_HD PALIMPSA_INLINE friend constexpr row_truth<N> operator op(S a, row_set b) {      \
    return broadcast(a) op b;                                                                  \
  }
  PALIMPSA_ROW_SET_COMPARISON(<)
  PALIMPSA_ROW_SET_COMPARISON(<=)
  PALIMPSA_ROW_SET_COMPARISON(>)
  PALIMPSA_ROW_SET_COMPARISON(>=)
#undef PALIMPSA_ROW_SET_COMPARISON
  /// @endcond

  /// Row by row, as the other operators.
  PALIMPSA_HD PALIMPSA_INLINE friend constexpr row_set operator-(row_set a) {
    for (int i = 0; i < N; ++i) a.row[i] = -a.row[i];
    return a;
  }
  /// f of every row.
  template <class F>
  PALIMPSA_HD PALIMPSA_INLINE constexpr row_set map(F f) const {
    row_set r = *this;
    for (int i = 0; i < N; ++i) r.row[i] = f(row[i]);
    return r;
  }
};

/// a·b + c, row by row, rounded once where the target fuses: see palimpsa/fused.hpp.
template <class S, int N>
PALIMPSA_HD PALIMPSA_INLINE row_set<S, N> multiply_add(row_set<S, N> a, row_set<S, N> b, row_set<S, N> c) {
  for (int i = 0; i < N; ++i) c.row[i] = palimpsa::detail::multiply_add(a.row[i], b.row[i], c.row[i]);
  return c;
}

}  // namespace palimpsa::cuda
