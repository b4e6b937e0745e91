#pragma once
/// @file
/// Matrix products in registers: B and C come in packs of columns, every element of A is broadcast.
///
///     add_product    C ← C + A B,  A possibly transposed
///     add_lower      C_t ← C_t + Σ_{s≤t} A_ts B_s, never touching what lies above the diagonal
///     substitute     B_t ← B_t + Σ_{s<t} A_ts B_s, forward substitution, B ← (1 - A)⁻¹ B
///
/// A tile of C stays in registers while A and B pass by: 4 rows of 4 packs with AVX-512, 4 of 2 otherwise, 8 rows of one pack, 16 or 8
/// sums, which hide the latency of two multiply-adds a clock. Nothing is packed or allocated; the order of a sum is that of the depth,
/// whatever the tile, and a row of C sees its own row of A alone. Columns are whole packs (padded_columns).

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "palimpsa/fused.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/pack.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// A row-major matrix, or a block of one, in scratch memory. Its extents are known to whoever uses it.
template <class Scalar>
struct matrix {
  Scalar* data = nullptr;   ///< element (0, 0)
  std::int64_t stride = 0;  ///< from one row to the next, in elements

  /// Element (i, j).
  Scalar& operator()(std::int64_t i, std::int64_t j) const { return data[i * stride + j]; }
  /// Row i.
  Scalar* row(std::int64_t i) const { return data + i * stride; }
  /// The block that starts at (i, j).
  matrix from(std::int64_t i, std::int64_t j = 0) const { return {data + i * stride + j, stride}; }
};

/// A matrix read with rows and columns exchanged.
template <class Scalar>
struct transposed {
  matrix<Scalar> of;  ///< as it lies in memory
  /// Element (i, j) of the exchanged matrix.
  Scalar& operator()(std::int64_t i, std::int64_t j) const { return of(j, i); }
  /// The block that starts at (i, j) of the exchanged matrix.
  transposed from(std::int64_t i, std::int64_t j = 0) const { return {of.from(j, i)}; }
};

/// Columns in whole packs: rows start aligned and loops need no remainder.
template <class Scalar>
constexpr std::int64_t padded_columns(std::int64_t columns) {
  constexpr std::int64_t width = native_pack<Scalar>::size;
  return (columns + width - 1) / width * width;
}

/// Reads the pack at an aligned address.
template <class Scalar>
PALIMPSA_INLINE native_pack<Scalar> pack_at(Scalar const* address) {
  native_pack<Scalar> p;
  std::memcpy(&p, address, sizeof p);
  return p;
}

/// Writes the pack at an aligned address.
template <class Scalar>
PALIMPSA_INLINE void put_pack(native_pack<Scalar> p, Scalar* address) {
  std::memcpy(address, &p, sizeof p);
}

/// The sizes of a product: rows × depth times depth × columns.
struct product_sizes {
  std::int64_t rows;     ///< of A and C
  std::int64_t depth;    ///< columns of A, rows of B
  std::int64_t columns;  ///< of B and C
};

namespace detail {

/// x in every lane. (0 + x would be an addition: it turns -0 into 0.)
template <class Scalar>
PALIMPSA_INLINE native_pack<Scalar> everywhere(Scalar x) {
  return {x - typename native_pack<Scalar>::native{}};
}

/// f(0), f(1), ... f(N - 1) with constant arguments: what they index lives in registers.
template <int N, class F>
PALIMPSA_INLINE void unrolled(F f) {
  [&]<int... I>(std::integer_sequence<int, I...>) PALIMPSA_INLINE_LAMBDA {
    (f(std::integral_constant<int, I>{}), ...);
  }(std::make_integer_sequence<int, N>{});
}

inline constexpr int most_packs = vector_bytes == 64 ? 4 : 2;
template <int Packs>
inline constexpr int most_rows = Packs == 1 ? 8 : 4 * most_packs / Packs;  // 16 or 8 sums
/// Depth that passes by at once: 128 rows of four packs are 32 KB.
inline constexpr std::int64_t most_depth = 128;

/// Rows × Packs packs of C.
template <class Scalar, int Rows, int Packs>
struct product_tile {
  static constexpr int width = native_pack<Scalar>::size;
  native_pack<Scalar> sum[Rows][Packs];

  PALIMPSA_INLINE void load(matrix<Scalar> c) {
    unrolled<Rows>([&](auto r) PALIMPSA_INLINE_LAMBDA {
      unrolled<Packs>([&](auto p) PALIMPSA_INLINE_LAMBDA { sum[r][p] = pack_at(c.row(r) + p * width); });
    });
  }
  PALIMPSA_INLINE void store(matrix<Scalar> c) const {
    unrolled<Rows>([&](auto r) PALIMPSA_INLINE_LAMBDA {
      unrolled<Packs>([&](auto p) PALIMPSA_INLINE_LAMBDA { put_pack(sum[r][p], c.row(r) + p * width); });
    });
  }
  /// += A B.
  template <class Left>
  PALIMPSA_INLINE void add(std::int64_t depth, Left a, matrix<Scalar> b) {
    for (std::int64_t d = 0; d < depth; ++d) {
      native_pack<Scalar> row[Packs];
      unrolled<Packs>([&](auto p) PALIMPSA_INLINE_LAMBDA { row[p] = pack_at(b.row(d) + p * width); });
      unrolled<Rows>([&](auto r) PALIMPSA_INLINE_LAMBDA {
        native_pack<Scalar> const x = everywhere<Scalar>(a(r, d));
        unrolled<Packs>([&](auto p) PALIMPSA_INLINE_LAMBDA { sum[r][p] = fused(x, row[p], sum[r][p]); });
      });
    }
  }
};

template <int Rows, int Packs, class Scalar, class Left>
void add_rows(std::int64_t rows, std::int64_t depth, Left a, matrix<Scalar> b, matrix<Scalar> c) {
  std::int64_t i = 0;
  for (; i + Rows <= rows; i += Rows) {
    product_tile<Scalar, Rows, Packs> tile;
    tile.load(c.from(i));
    tile.add(depth, a.from(i), b);
    tile.store(c.from(i));
  }
  if constexpr (Rows > 1)
    if (i < rows) add_rows<Rows / 2, Packs>(rows - i, depth, a.from(i), b, c.from(i));
}

/// f(first pack, number of packs) over `packs` packs, the number a constant.
template <int Packs, class F>
PALIMPSA_INLINE void each_panel(std::int64_t packs, F f, std::int64_t p = 0) {
  for (; p + Packs <= packs; p += Packs) f(p, std::integral_constant<int, Packs>{});
  if constexpr (Packs > 1) each_panel<Packs / 2>(packs, f, p);
}

}  // namespace detail

/// C ← C + A B.
template <class Scalar, class Left>
void add_product(product_sizes n, Left a, matrix<Scalar> b, matrix<Scalar> c) {
  constexpr std::int64_t width = native_pack<Scalar>::size;
  for (std::int64_t d = 0; d < n.depth; d += detail::most_depth) {
    std::int64_t const depth = n.depth - d < detail::most_depth ? n.depth - d : detail::most_depth;
    detail::each_panel<detail::most_packs>(padded_columns<Scalar>(n.columns) / width, [&](std::int64_t p, auto packs) {
      detail::add_rows<detail::most_rows<packs>, packs>(n.rows, depth, a.from(0, d), b.from(d, p * width), c.from(0, p * width));
    });
  }
}

namespace detail {

/// Rows [first, first + Rows) of a lower triangle: those before by a product, the triangle between them row after row.
template <bool InPlace, int Rows, class Scalar>
void add_lower_rows(std::int64_t before, std::int64_t columns, matrix<Scalar> a, matrix<Scalar> b, matrix<Scalar> c) {
  constexpr std::int64_t width = native_pack<Scalar>::size;
  add_product({Rows, before, columns}, a, b, c);
  each_panel<most_packs>(padded_columns<Scalar>(columns) / width, [&](std::int64_t p, auto packs) {
    product_tile<Scalar, Rows, packs> tile, right;
    tile.load(c.from(0, p * width));
    if constexpr (!InPlace) right.load(b.from(before, p * width));
    unrolled<Rows>([&](auto t) PALIMPSA_INLINE_LAMBDA {
      unrolled<t + (InPlace ? 0 : 1)>([&](auto s) PALIMPSA_INLINE_LAMBDA {
        native_pack<Scalar> const x = everywhere<Scalar>(a(t, before + s));
        unrolled<packs>([&](auto q) PALIMPSA_INLINE_LAMBDA {
          tile.sum[t][q] = fused(x, InPlace ? tile.sum[s][q] : right.sum[s][q], tile.sum[t][q]);
        });
      });
    });
    tile.store(c.from(0, p * width));
  });
}

template <bool InPlace, int Rows, class Scalar>
void add_lower_blocks(std::int64_t rows, std::int64_t before, std::int64_t columns, matrix<Scalar> a, matrix<Scalar> b,
                      matrix<Scalar> c) {
  std::int64_t t = 0;
  for (; t + Rows <= rows; t += Rows) add_lower_rows<InPlace, Rows>(before + t, columns, a.from(t), b, c.from(t));
  if constexpr (Rows > 1)
    if (t < rows) add_lower_blocks<InPlace, Rows / 2>(rows - t, before + t, columns, a.from(t), b, c.from(t));
}

}  // namespace detail

/// C_t ← C_t + Σ_{s ≤ before + t} A_ts B_s for t in [0, rows). A later row of B reaches no earlier one of C, not even as 0·NaN.
template <class Scalar>
void add_lower(std::int64_t rows, std::int64_t before, std::int64_t columns, matrix<Scalar> a, matrix<Scalar> b, matrix<Scalar> c) {
  detail::add_lower_blocks<false, 4>(rows, before, columns, a, b, c);
}

/// B_{before+t} ← B_{before+t} + Σ_{s < before + t} A_ts B_s for t in [0, rows), in order.
template <class Scalar>
void substitute(std::int64_t rows, std::int64_t before, std::int64_t columns, matrix<Scalar> a, matrix<Scalar> b) {
  detail::add_lower_blocks<true, 4>(rows, before, columns, a, b, b.from(before));
}

}  // namespace palimpsa::cpu
