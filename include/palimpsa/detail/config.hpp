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

// Arithmetic that assumes there is no NaN and no infinity, or that sums may be taken in any order, makes checks pass what they should
// refuse (`!(prior > 0)` lets a NaN through) and undoes every promise about bits. clang++ 14 shows only the first two of these macros.
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || defined(__ASSOCIATIVE_MATH__) || \
    defined(__RECIPROCAL_MATH__)
#define PALIMPSA_FAST_MATH 1
#if !defined(PALIMPSA_ALLOW_FAST_MATH)
#error "palimpsa: compiled with -ffast-math or a part of it: checks no longer see a NaN or an infinity, and results are not those of the documentation. Compile without it, or define PALIMPSA_ALLOW_FAST_MATH to take that on"
#endif
#else
#define PALIMPSA_FAST_MATH 0
#endif

// One program may hold translation units, or shared libraries, that were compiled with different flags. What is compiled from these
// headers differs then in layout (packs), in roundings (fused multiply-adds) and in the threads a workspace is cut for, under the same
// names, of which a linker keeps any one. So everything but the vocabulary of a call (views, arguments, tags, errors, policies, rules:
// the same in every build) lies in an inline namespace keyed by the version and by what changes a layout or a result.
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
#if defined(_OPENMP)
#define PALIMPSA_THREADS 1
#else
#define PALIMPSA_THREADS 0
#endif
#define PALIMPSA_ABI_JOIN_(major, minor, patch, bytes, fuses, threads, fast) \
  v##major##_##minor##_##patch##_pack##bytes##_fma##fuses##_omp##threads##_fast##fast
#define PALIMPSA_ABI_JOIN(...) PALIMPSA_ABI_JOIN_(__VA_ARGS__)
#define PALIMPSA_ABI                                                                                                             \
  PALIMPSA_ABI_JOIN(PALIMPSA_VERSION_MAJOR, PALIMPSA_VERSION_MINOR, PALIMPSA_VERSION_PATCH, PALIMPSA_VECTOR_BYTES, PALIMPSA_FUSES, \
                    PALIMPSA_THREADS, PALIMPSA_FAST_MATH)
