#pragma once
/// @file
/// a·b + c of numbers and packs, with one rounding where the target fuses: nothing is left to a compiler's choice to contract.

#include <type_traits>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/pack.hpp"

#if defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace palimpsa::inline PALIMPSA_ABI::cpu::detail {

/// a·b + c, one rounding where the target fuses.
template <class Scalar>
PALIMPSA_INLINE native_pack<Scalar> fused(native_pack<Scalar> a, native_pack<Scalar> b, native_pack<Scalar> c) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<Scalar, float>)
    return {_mm512_fmadd_ps(a.lanes, b.lanes, c.lanes)};
  else
    return {_mm512_fmadd_pd(a.lanes, b.lanes, c.lanes)};
#elif defined(__FMA__)
  if constexpr (std::is_same_v<Scalar, float>)
    return {_mm256_fmadd_ps(a.lanes, b.lanes, c.lanes)};
  else
    return {_mm256_fmadd_pd(a.lanes, b.lanes, c.lanes)};
#else
  return {a.lanes * b.lanes + c.lanes};
#endif
}

/// The same of one number.
PALIMPSA_INLINE float fused(float a, float b, float c) {
#if PALIMPSA_FUSES
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
PALIMPSA_INLINE double fused(double a, double b, double c) {
#if PALIMPSA_FUSES
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

}  // namespace palimpsa::cpu::detail
