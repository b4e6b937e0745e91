#pragma once
/// @file
/// How far a tensor may be from its right value. Per tensor,
///
///     error = ‖x - right‖₂ / max(‖right‖₂, 1e-30 √(number of elements))
///
/// held to a bound that follows from the arithmetic, from how the tensor is stored, and, where a linear system was
/// solved, from its condition. There is no other tolerance.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/tensor.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// How far apart two tensors are.
struct distance {
  double relative = 0;  ///< ‖x - right‖₂ / max(‖right‖₂, 1e-30 √n); infinite where a number is not finite
  double largest = 0;   ///< max |x - right|; infinite likewise
};

/// The distance of x from its right value, over as many elements as both have.
inline distance distance_between(std::span<double const> x, std::span<double const> right) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (x.size() != right.size()) return {infinity, infinity};
  double unit = 0;  // norms are taken in units of the largest number, so that squares of 1e±200 do not matter
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(right[i])) return {infinity, infinity};
    unit = (std::max)({unit, std::abs(x[i]), std::abs(right[i])});
  }
  if (unit == 0) return {};
  double error = 0, norm = 0, largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const r = right[i] / unit, gap = x[i] / unit - r;
    error += gap * gap;
    norm += r * r;
    largest = (std::max)(largest, std::abs(gap));
  }
  double const floor = 1e-30 / unit * std::sqrt(static_cast<double>(x.size()));
  return {std::sqrt(error) / (std::max)(std::sqrt(norm), floor), largest * unit};
}

/// The bound for arithmetic in F64 or, for every other type, in F32.
/// @param tokens of the longest sequence
/// @param condition of the systems that were solved on the way to the tensor, 0 if there are none. A bound never passes
/// 1/2: above it zeros would do.
inline double arithmetic_bound(dtype type, std::int64_t tokens, double condition) {
  bool const wide = type == dtype::f64;
  double const length = std::sqrt(static_cast<double>((std::max)(tokens, std::int64_t{1})));
  double const plain = wide ? 1e-12 : (std::min)(5e-7 * length, 1e-5);
  double const solved = 8 * (wide ? 0x1p-52 : 0x1p-23) * condition;
  return (std::max)(plain, (std::min)(solved, 0.5));
}

/// What storing a tensor in this type adds to its bound: 2⁻⁸ for BF16, 2⁻¹¹ for F16.
constexpr double storage_bound(dtype type) {
  if (type == dtype::bf16) return 0x1p-8;
  return type == dtype::f16 ? 0x1p-11 : 0;
}

/// The bound for a tensor that came out of arithmetic in, and is stored as, `type`.
inline double stored_bound(dtype type, std::int64_t tokens, double condition) {
  return arithmetic_bound(type, tokens, condition) + storage_bound(type);
}

/// Half a step among the denormals of a type: how far a number that is stored may be off, however small it is.
constexpr double storage_floor(dtype type) {
  if (type == dtype::f16) return 0x1p-25;
  if (type == dtype::bf16) return 0x1p-134;
  return type == dtype::f32 ? 0x1p-150 : 0;
}

/// What that adds to the bound of `count` numbers of a 2-norm.
inline double floor_bound(dtype type, std::size_t count, double norm) {
  double const root = std::sqrt(static_cast<double>(count));
  return storage_floor(type) * root / (std::max)({norm, 1e-30 * root, 1e-300});
}

/// The condition that a head's gradient of its prior is taken to have: one number, the sum over all tokens and cells of terms of
/// both signs (400 was met). The norm over heads, which is held without it, runs over few such sums.
inline constexpr double prior_gradient_condition = 400;

/// A band of gates: log_decay in (-upper, -lower]. One norm over a gradient hides its small entries, and those of
/// strong gates are small.
struct gate_band {
  double lower;           ///< least |log_decay|
  double upper;           ///< |log_decay| stays below it
  std::string_view text;  ///< for the name of a row
};

/// The bands grad_log_decay is held to its bound in, beside the whole of it.
inline constexpr std::array<gate_band, 4> gate_bands{
    {{0, 1, "[0,1)"}, {1, 4, "[1,4)"}, {4, 16, "[4,16)"}, {16, 64, "[16,64)"}}};

}  // namespace palimpsa::io
