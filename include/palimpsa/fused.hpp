#pragma once
/// @file
/// a·b + c with one rounding, said aloud. What is left to a compiler's choice (to contract a product and a sum, here and not there) is
/// not the same in two kernels that share a line. Equal bits are promised, so in the recurrence every product that meets a sum does it
/// here, for a number, a pack of rows (pack.hpp) and the rows of a GPU thread (row_set.hpp) alike.

#include <cmath>
#include <type_traits>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/elementwise.hpp"

namespace palimpsa::inline PALIMPSA_ABI {
namespace detail {

PALIMPSA_HD PALIMPSA_INLINE float multiply_add(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return fmaf(a, b, c);
#elif PALIMPSA_FUSES
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

PALIMPSA_HD PALIMPSA_INLINE double multiply_add(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return fma(a, b, c);
#elif PALIMPSA_FUSES
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

}  // namespace detail

/// a·b + c: rounded once where the target fuses (PALIMPSA_FUSES, every GPU), else twice. A number stands for a value of many rows.
template <class A, class B, class C>
PALIMPSA_HD PALIMPSA_INLINE auto fused(A a, B b, C c) {
  using T = detail::operand_of<detail::operand_of<A, B>, C>;
  if constexpr (std::is_class_v<T>) {
    return multiply_add(detail::as<T>(a), detail::as<T>(b), detail::as<T>(c));
  } else {
    return detail::multiply_add(detail::as<T>(a), detail::as<T>(b), detail::as<T>(c));
  }
}

}  // namespace palimpsa
