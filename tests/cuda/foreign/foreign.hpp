#pragma once
// See foreign.cu.

#include "cuda/gpu_rules.hpp"

namespace palimpsa_test {

/// Compute capability, major number, of the only GPUs that foreign.cu is compiled for.
inline constexpr int foreign_major = 12;

/// Mamba2 for those.
gpu_calls<float> foreign_mamba2();

}  // namespace palimpsa_test
