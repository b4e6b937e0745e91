#pragma once
/// @file
/// Matrix products over the caller's workspace: Eigen's, cut into panels.
///
///     add_product    C ← C + A B,  A or B possibly transposed
///     add_lower      C_t ← C_t + Σ_{s<t} A_ts B_s   (or s ≤ t), never touching what lies above the diagonal
///
/// Eigen keeps a packed copy of both factors. The panels have their largest sizes in their types, so that the copies lie on the
/// stack (64 KB at most, 16 KB beside it) and nothing is allocated; and since a destination of at most 32 rows is never given to
/// several threads, a call keeps to the number of threads that it was allowed.

#include <Eigen/Core>
#include <cstdint>
#include <cstring>

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
  /// The block that starts at (i, j) of the exchanged matrix.
  transposed from(std::int64_t i, std::int64_t j) const { return {of.from(j, i)}; }
};

/// Elements between rows of `columns` elements: a whole number of packs, so that rows start aligned and loops need no remainder.
template <class Scalar>
constexpr std::int64_t padded_columns(std::int64_t columns) {
  constexpr std::int64_t width = native_pack<Scalar>::size;
  return (columns + width - 1) / width * width;
}

namespace detail {

inline constexpr int panel_rows = 32;
inline constexpr int panel_depth = 128;
template <class Scalar>
inline constexpr int panel_columns = 65536 / (panel_depth * static_cast<int>(sizeof(Scalar)));

template <class Scalar, int Order, int MaxRows, int MaxColumns>
using panel = Eigen::Map<Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Order, MaxRows, MaxColumns>, Eigen::Unaligned,
                         Eigen::OuterStride<>>;

template <int MaxRows, int MaxColumns, class Scalar>
auto panel_of(matrix<Scalar> m, std::int64_t rows, std::int64_t columns) {
  return panel<Scalar, Eigen::RowMajor, MaxRows, MaxColumns>(m.data, rows, columns, Eigen::OuterStride<>(m.stride));
}
template <int MaxRows, int MaxColumns, class Scalar>
auto panel_of(transposed<Scalar> m, std::int64_t rows, std::int64_t columns) {
  return panel<Scalar, Eigen::ColMajor, MaxRows, MaxColumns>(m.of.data, rows, columns, Eigen::OuterStride<>(m.of.stride));
}

inline std::int64_t lesser(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

}  // namespace detail

/// The sizes of a product: rows × depth times depth × columns.
struct product_sizes {
  std::int64_t rows;     ///< of A and C
  std::int64_t depth;    ///< columns of A, rows of B
  std::int64_t columns;  ///< of B and C
};

/// C ← C + A B.
template <class Scalar, class Left, class Right>
void add_product(product_sizes n, Left a, Right b, matrix<Scalar> c) {
  using detail::lesser;
  constexpr int R = detail::panel_rows, D = detail::panel_depth, W = detail::panel_columns<Scalar>;
  for (std::int64_t j = 0; j < n.columns; j += W)
    for (std::int64_t d = 0; d < n.depth; d += D)
      for (std::int64_t i = 0; i < n.rows; i += R) {
        std::int64_t const rows = lesser(R, n.rows - i), depth = lesser(D, n.depth - d), columns = lesser(W, n.columns - j);
        detail::panel_of<R, W>(c.from(i, j), rows, columns).noalias() +=
            detail::panel_of<R, D>(a.from(i, d), rows, depth) * detail::panel_of<D, W>(b.from(d, j), depth, columns);
      }
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

namespace detail {

template <int Packs, class Scalar>
void add_lower_columns(std::int64_t rows, std::int64_t shown, matrix<Scalar> a, matrix<Scalar> b, matrix<Scalar> c) {
  constexpr int width = native_pack<Scalar>::size;
  for (std::int64_t t = 0; t < rows; ++t) {
    native_pack<Scalar> sum[Packs];
    for (int p = 0; p < Packs; ++p) sum[p] = pack_at(c.row(t) + p * width);
    for (std::int64_t s = 0; s < t + shown; ++s)
      for (int p = 0; p < Packs; ++p) sum[p] = sum[p] + a(t, s) * pack_at(b.row(s) + p * width);
    for (int p = 0; p < Packs; ++p) put_pack(sum[p], c.row(t) + p * width);
  }
}

}  // namespace detail

/// Which elements of a lower triangle take part.
enum class triangle {
  strict,   ///< s < t
  diagonal  ///< s ≤ t
};

/// C_t ← C_t + Σ A_ts B_s over the triangle, row after row: with C = B and a strict triangle this is forward substitution,
/// B ← (1 - A)⁻¹ B. A later row reaches no earlier one, not even as 0·NaN. Columns come in whole packs (padded_columns).
template <class Scalar>
void add_lower(triangle which, std::int64_t rows, std::int64_t columns, matrix<Scalar> a, matrix<Scalar> b, matrix<Scalar> c) {
  constexpr std::int64_t width = native_pack<Scalar>::size;
  std::int64_t const shown = which == triangle::diagonal ? 1 : 0, packs = padded_columns<Scalar>(columns) / width;
  std::int64_t p = 0;
  for (; p + 4 <= packs; p += 4) detail::add_lower_columns<4>(rows, shown, a, b.from(0, p * width), c.from(0, p * width));
  for (; p < packs; ++p) detail::add_lower_columns<1>(rows, shown, a, b.from(0, p * width), c.from(0, p * width));
}

}  // namespace palimpsa::cpu
