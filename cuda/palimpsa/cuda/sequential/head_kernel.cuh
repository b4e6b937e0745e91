#pragma once
/// @file
/// The head stage of a full memory on the GPU: one block a head. J lies in shared memory where it fits, in device memory otherwise;
/// the arithmetic and its order are the same.

#include "palimpsa/cuda/entry/abi.cuh"
#include "palimpsa/cuda/execution.cuh"
#include "palimpsa/cuda/sequential/head_block.hpp"

namespace palimpsa::cuda {
inline namespace PALIMPSA_CUDA_ABI {

/// Threads of a head's block: one a key, whole warps.
inline int head_threads(std::int64_t keys) { return static_cast<int>((keys + 31) / 32 * 32); }

/// The threads of a block as a team.
struct block_team {
  float* scratch;  ///< 32 floats of shared memory

  /// This thread's number.
  __device__ static int rank() { return static_cast<int>(threadIdx.x); }
  /// Threads of the block.
  __device__ static int size() { return static_cast<int>(blockDim.x); }
  /// Waits for the others.
  __device__ static void sync() { __syncthreads(); }

  /// f over all threads' x, in an order fixed by the number of threads.
  template <class F>
  __device__ float reduce(float x, F f, float neutral) const {
    PALIMPSA_UNROLLED
    for (int step = 16; step > 0; step /= 2) x = f(x, __shfl_xor_sync(0xffffffffu, x, step, 32));
    __syncthreads();  // the last reduction's scratch has been read
    if (rank() % 32 == 0) scratch[rank() / 32] = x;
    __syncthreads();
    float total = neutral;
    for (int warp = 0; warp < size() / 32; ++warp) total = f(total, scratch[warp]);
    return total;
  }
  /// Σ over threads.
  __device__ float sum(float x) const {
    return reduce(x, [](float a, float b) { return a + b; }, 0.0f);
  }
  /// The largest over threads; NaN if there is one.
  __device__ float largest(float x) const {
    return reduce(x, [](float a, float b) { return a != a || a > b ? a : b; }, 0.0f);
  }
};

/// Heads of a problem, one a block at a time. Dynamic shared memory: the vectors, then J if it lies there.
template <class Rule, class Storage>
static __global__ void __launch_bounds__(256) head_kernel(head_problem<Storage> const __grid_constant__ p) {
  extern __shared__ float shared[];
  scan_shape const& s = p.rows.shape;
  int const keys = static_cast<int>(s.keys);
  block_team const team{shared};
  float* const vectors = shared + 32;
  float* const matrix =
      p.matrices != nullptr ? p.matrices + static_cast<std::int64_t>(blockIdx.x) * keys * keys : vectors + head_memory::vectors(keys);
  head_memory const memory = head_memory::over(matrix, vectors, keys);
  for (std::int64_t task = blockIdx.x; task < s.sequences * s.value_heads; task += gridDim.x)
    run_head<Rule>(team, p, task / s.value_heads, task % s.value_heads, memory);
}

}  // namespace PALIMPSA_CUDA_ABI
}  // namespace palimpsa::cuda
