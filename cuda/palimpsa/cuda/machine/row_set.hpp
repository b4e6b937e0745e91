#pragma once
/// @file
/// A few value rows in one thread's registers: what a pack is to the CPU's vector unit. Every operation is lane-wise and unrolled,
/// so that keys and queries loaded once serve all rows of the thread. Host and device.

#include "palimpsa/detail/config.hpp"

namespace palimpsa::cuda {

/// N scalars with lane-wise arithmetic.
template <class S, int N>
struct row_set {
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
  /// @endcond

  /// Row by row, as the other operators.
  PALIMPSA_HD PALIMPSA_INLINE friend constexpr row_set operator-(row_set a) {
    for (int i = 0; i < N; ++i) a.row[i] = -a.row[i];
    return a;
  }
};

}  // namespace palimpsa::cuda
