#pragma once
/// @file
/// One program may hold two shared libraries that include this one, built for different GPUs. Code that launches kernels therefore
/// lives in an inline namespace keyed by version and architecture list, and kernels have internal linkage: no library ever launches
/// another's device code.

#include "palimpsa/version.hpp"

/// @cond
#if defined(__CUDA_ARCH_LIST__)
#define PALIMPSA_CUDA_ARCHS __CUDA_ARCH_LIST__
#else
#define PALIMPSA_CUDA_ARCHS none
#endif

#define PALIMPSA_CUDA_JOIN_(major, minor, a, b, c, d, e, f, g, h, ...) v##major##_##minor##_sm_##a##_##b##_##c##_##d##_##e##_##f##_##g##_##h
#define PALIMPSA_CUDA_JOIN(...) PALIMPSA_CUDA_JOIN_(__VA_ARGS__)
#define PALIMPSA_CUDA_ABI PALIMPSA_CUDA_JOIN(PALIMPSA_VERSION_MAJOR, PALIMPSA_VERSION_MINOR, PALIMPSA_CUDA_ARCHS, 0, 0, 0, 0, 0, 0, 0, 0)

#define PALIMPSA_CUDA_TEXT_(...) #__VA_ARGS__
#define PALIMPSA_CUDA_TEXT(...) PALIMPSA_CUDA_TEXT_(__VA_ARGS__)
/// @endcond
/// The architecture list as text, for messages.
#define PALIMPSA_CUDA_ARCH_TEXT PALIMPSA_CUDA_TEXT(PALIMPSA_CUDA_ARCHS)
