#pragma once
// The two macros that cannot be avoided: a function that runs on the host and on the device, and one that must be inlined
// (a pack of rows passed by value costs a trip through memory otherwise).
#if defined(__CUDACC__)
#define PALIMPSA_HD __host__ __device__
#else
#define PALIMPSA_HD
#endif

#if defined(__GNUC__) || defined(__clang__)
#define PALIMPSA_INLINE inline __attribute__((always_inline))
#define PALIMPSA_INLINE_LAMBDA __attribute__((always_inline))
#else
#define PALIMPSA_INLINE inline
#define PALIMPSA_INLINE_LAMBDA
#endif
