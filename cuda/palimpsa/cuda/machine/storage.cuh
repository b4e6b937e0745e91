#pragma once
/// @file
/// CUDA's bfloat16 and half as storage of q, k, v, out. Arithmetic on them is float32.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "palimpsa/storage.hpp"

namespace palimpsa {

/// bfloat16: 8 bits of significand, the range of float32.
template <>
struct storage<__nv_bfloat16> {
  using scalar = float;                          ///< arithmetic type
  static constexpr char const* name = "bfloat16";  ///< for messages
  /// Exact.
  PALIMPSA_HD static float load(__nv_bfloat16 x) { return __bfloat162float(x); }
  /// To nearest, ties to even.
  PALIMPSA_HD static __nv_bfloat16 store(float x) { return __float2bfloat16_rn(x); }
};

/// IEEE half: 11 bits of significand, |x| ≤ 65504.
template <>
struct storage<__half> {
  using scalar = float;                         ///< arithmetic type
  static constexpr char const* name = "float16";  ///< for messages
  /// Exact.
  PALIMPSA_HD static float load(__half x) { return __half2float(x); }
  /// To nearest, ties to even.
  PALIMPSA_HD static __half store(float x) { return __float2half_rn(x); }
};

}  // namespace palimpsa
