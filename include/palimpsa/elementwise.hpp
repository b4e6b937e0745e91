#pragma once
/// @file
/// What the body of a policy may say beyond + - * / and lanes.reciprocal, under the same names for a number, a pack of rows (pack.hpp)
/// and the rows of a GPU thread (row_set.hpp):
///
///     a < b, <=, >, >=            a truth a row
///     select(a < b, x, y)         x in the rows where it holds, y in the others
///     minimum(a, b), maximum(a, b), exp(a), rowwise(a, f)
///     scalar_of<T>, unit<T>()     the type of one row, and the number one
///
/// Numbers may stand for a value that is the same in all rows: minimum(own, 0.5). Host and device.

#include <cmath>
#include <concepts>
#include <type_traits>

#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI {
namespace detail {

/// The type of one row.
template <class T>
struct row_type {
  using type = typename T::scalar;
};
template <class T>
  requires std::is_arithmetic_v<T>
struct row_type<T> {
  using type = T;
};

/// Of two operands the one whose type the result has: the value of many rows; between two numbers the first, unless it is an integer.
template <class A, class B>
using operand_of = std::conditional_t<std::is_class_v<A> || (std::is_floating_point_v<A> && !std::is_class_v<B>), A, B>;

/// x as a T: itself, or the same number in every row.
template <class T, class X>
PALIMPSA_HD PALIMPSA_INLINE constexpr T as(X x) {
  if constexpr (std::is_same_v<T, X>) {
    return x;
  } else if constexpr (std::is_class_v<T>) {
    return T::broadcast(static_cast<typename row_type<T>::type>(x));
  } else {
    return static_cast<T>(x);
  }
}

/// What a comparison of many rows is not.
struct truth_a_row {
  /// Refused: rows may differ.
  template <class Bool>
  PALIMPSA_HD explicit constexpr operator Bool() const {
    static_assert(!std::is_same_v<Bool, Bool>,
                  "palimpsa: a comparison in a policy has an answer a row: write select(a < b, x, y) in place of a < b ? x : y or if (a < b)");
    return {};
  }
};

}  // namespace detail

/// float or double: the type of one row of T, a number, a pack or a row_set.
template <class T>
using scalar_of = typename detail::row_type<T>::type;

/// x where the comparison holds and y elsewhere, row by row. Both are evaluated.
template <class Truth, class X, class Y>
PALIMPSA_HD PALIMPSA_INLINE constexpr auto select(Truth holds, X x, Y y) {
  using T = detail::operand_of<X, Y>;
  if constexpr (std::is_class_v<Truth>) {
    return holds.choose(detail::as<T>(x), detail::as<T>(y));
  } else {
    return holds ? detail::as<T>(x) : detail::as<T>(y);
  }
}

/// The smaller, row by row; a where either is no number.
template <class A, class B>
PALIMPSA_HD PALIMPSA_INLINE constexpr auto minimum(A a, B b) {
  using T = detail::operand_of<A, B>;
  T const x = detail::as<T>(a), y = detail::as<T>(b);
  return select(y < x, y, x);
}

/// The larger, row by row; a where either is no number.
template <class A, class B>
PALIMPSA_HD PALIMPSA_INLINE constexpr auto maximum(A a, B b) {
  using T = detail::operand_of<A, B>;
  T const x = detail::as<T>(a), y = detail::as<T>(b);
  return select(x < y, y, x);
}

/// f of every row: rowwise(x, [](auto y) { return std::tanh(y); }).
template <class T, class F>
PALIMPSA_HD PALIMPSA_INLINE constexpr T rowwise(T x, F f) {
  if constexpr (std::is_class_v<T>) {
    return x.map(f);
  } else {
    return f(x);
  }
}

/// eˣ, row by row.
template <class T>
PALIMPSA_HD PALIMPSA_INLINE T exp(T x) {
  return rowwise(x, [](scalar_of<T> y) -> scalar_of<T> { return std::exp(y); });
}

}  // namespace palimpsa
