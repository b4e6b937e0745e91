#pragma once
// The macros that cannot be avoided: a function that runs on the host and on the device, one that must be inlined (a pack of rows
// passed by value costs a trip through memory otherwise), how a device loop is laid out, and the name of a build.

#include "palimpsa/version.hpp"

#if defined(__CUDACC__)
#define PALIMPSA_HD __host__ __device__
#else
#define PALIMPSA_HD
#endif

// Before a loop in host-device code: unroll it on the device (register arrays need constant indices), or keep it rolled there (copy
// loops whose unrolled addresses would push the state out of registers).
#if defined(__CUDA_ARCH__)
#define PALIMPSA_UNROLLED _Pragma("unroll")
#define PALIMPSA_ROLLED _Pragma("unroll 1")
#else
#define PALIMPSA_UNROLLED
#define PALIMPSA_ROLLED
#endif

#if defined(__GNUC__) || defined(__clang__)
#define PALIMPSA_INLINE inline __attribute__((always_inline))
#define PALIMPSA_INLINE_LAMBDA __attribute__((always_inline))
#else
#define PALIMPSA_INLINE inline
#define PALIMPSA_INLINE_LAMBDA
#endif

// One program may hold translation units, or shared libraries, that were compiled for different vector units. What is compiled from
// these headers differs then in layout (packs) and in roundings (fused multiply-adds), under the same names, of which a linker keeps
// any one. So everything but the vocabulary of a call (views, arguments, tags, errors, policies, rules: the same in every build) lies in
// an inline namespace keyed by the version and by what changes a layout or a result.
#if defined(__AVX512F__)
#define PALIMPSA_VECTOR_BYTES 64
#elif defined(__AVX__)
#define PALIMPSA_VECTOR_BYTES 32
#else
#define PALIMPSA_VECTOR_BYTES 16
#endif
#if defined(__FMA__) || defined(__AVX512F__) || defined(__ARM_FEATURE_FMA)
#define PALIMPSA_FUSES 1
#else
#define PALIMPSA_FUSES 0
#endif
#define PALIMPSA_ABI_JOIN_(major, minor, patch, bytes, fuses) v##major##_##minor##_##patch##_pack##bytes##_fma##fuses
#define PALIMPSA_ABI_JOIN(...) PALIMPSA_ABI_JOIN_(__VA_ARGS__)
#define PALIMPSA_ABI \
  PALIMPSA_ABI_JOIN(PALIMPSA_VERSION_MAJOR, PALIMPSA_VERSION_MINOR, PALIMPSA_VERSION_PATCH, PALIMPSA_VECTOR_BYTES, PALIMPSA_FUSES)
