#pragma once
/// @file
/// Sizes that cannot wrap: products and sums of extents, strides and bytes that stay at the largest number once they have left 63 bits.

#include <cstdint>
#include <limits>

/// Arithmetic of sizes that saturates.
namespace palimpsa::checked {

/// What a size that leaves 63 bits becomes, and stays.
inline constexpr std::int64_t endless = (std::numeric_limits<std::int64_t>::max)();

/// More elements, or bytes of a workspace, than any memory has; far enough below 2⁶³ for a small factor.
inline constexpr std::int64_t most = std::int64_t{1} << 56;

/// a · b of sizes; 0 if one of them is not above 0.
constexpr std::int64_t product(std::int64_t a, std::int64_t b) {
  if (a <= 0 || b <= 0) return 0;
  return a > endless / b ? endless : a * b;
}

/// A product of more sizes.
template <class... More>
constexpr std::int64_t product(std::int64_t a, std::int64_t b, More... more) {
  return product(product(a, b), more...);
}

/// a + b of sizes ≥ 0.
constexpr std::int64_t sum(std::int64_t a, std::int64_t b) { return a > endless - b ? endless : a + b; }

/// |x|, of the lowest number too.
constexpr std::int64_t magnitude(std::int64_t x) { return x >= 0 ? x : x == -endless - 1 ? endless : -x; }

}  // namespace palimpsa::checked
