#pragma once
/// @file
/// Matrix products of a chunk, by Eigen, in blocks small enough that Eigen packs its operands on the stack: a call allocates nothing.

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

namespace palimpsa::cpu {

/// A row-major matrix in a workspace.
template <class Scalar>
using matrix_map = Eigen::Map<Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

/// A matrix of `rows` × `columns` at `data`.
template <class Scalar>
matrix_map<Scalar> matrix(Scalar* data, std::int64_t rows, std::int64_t columns) {
  return {data, rows, columns};
}

namespace detail {

/// Calls f(block of out, block of a, block of b) for blocks whose products add up to a · b. Eigen takes its packing buffers from the
/// heap above 128 KB; blocks of 64 × 128 × 64 doubles need 64 KB each. Operands are matrices, not expressions: a block of an
/// expression is evaluated on the heap.
template <class Out, class A, class B, class F>
void for_each_block(Out&& out, A const& a, B const& b, F f) {
  constexpr std::int64_t rows = 64, depth = 128, columns = 64;
  for (std::int64_t i = 0; i < out.rows(); i += rows)
    for (std::int64_t j = 0; j < out.cols(); j += columns)
      for (std::int64_t k = 0; k < a.cols(); k += depth) {
        std::int64_t const m = (std::min)(rows, out.rows() - i), n = (std::min)(columns, out.cols() - j),
                           d = (std::min)(depth, a.cols() - k);
        f(out.block(i, j, m, n), a.block(i, k, m, d), b.block(k, j, d, n));
      }
}

}  // namespace detail

/// out += a · b.
template <class Out, class A, class B>
void add_product(Out&& out, A const& a, B const& b) {
  detail::for_each_block(out, a, b, [](auto to, auto const& left, auto const& right) { to.noalias() += left * right; });
}

/// out -= a · b.
template <class Out, class A, class B>
void subtract_product(Out&& out, A const& a, B const& b) {
  detail::for_each_block(out, a, b, [](auto to, auto const& left, auto const& right) { to.noalias() -= left * right; });
}

/// Solves (I + L) x = x in place, L strictly lower, by forward substitution: blocks of 32 rows by products, rows inside a block one
/// after another. An inverse by repeated squaring would be off by 1e9 where keys repeat.
template <class L, class X>
void solve_unit_lower(L const& lower, X& x) {
  constexpr std::int64_t block = 32;
  for (std::int64_t first = 0; first < x.rows(); first += block) {
    std::int64_t const count = (std::min)(block, x.rows() - first);
    subtract_product(x.middleRows(first, count), lower.block(first, 0, count, first), x.topRows(first));
    for (std::int64_t t = first; t < first + count; ++t)
      for (std::int64_t s = first; s < t; ++s) x.row(t).noalias() -= lower(t, s) * x.row(s);
  }
}

}  // namespace palimpsa::cpu
