#pragma once
// The macros that cannot be avoided: a function that runs on the host and on the device, one that must be inlined (a pack of rows
// passed by value costs a trip through memory otherwise), and how a device loop is laid out.
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
