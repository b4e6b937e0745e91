#pragma once
/// @file
/// The generic kernel: any rule whose rows need nothing from each other, one block for some rows of one head, tokens in order.
/// The phases are block.hpp's; this file adds threads, shared memory and barriers.

#include "palimpsa/cuda/abi.cuh"
#include "palimpsa/cuda/block.hpp"
#include "palimpsa/cuda/execution.cuh"

namespace palimpsa::cuda {
inline namespace PALIMPSA_CUDA_ABI {

/// Runs the tasks of a problem, each from its first token to its last. One call of n tokens and n calls of one run the same
/// instructions in the same order.
template <class Rule, bool Variance, class Tile, class Storage>
static __global__ void __launch_bounds__(Tile::threads, Tile::blocks) row_kernel(row_problem<Storage> const __grid_constant__ p) {
  using rows = row_set<float, Tile::rows>;
  __shared__ staged_tokens<Rule, Tile> staged;
  int const thread = static_cast<int>(threadIdx.x), lane = thread % Tile::lanes, group = thread / Tile::lanes;
  warp_lanes<Tile> const lanes;
  std::int64_t const tasks = task_count<Tile>(p.shape);

  for (std::int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    block_task const b = task_of<Tile>(p.shape, task);
    sequence_place const place = place_of(p, b.sequence, b.reports && thread == 0 && b.head == 0);
    if (place.inert) {
      clear(p, b, place.tokens, thread, Tile::threads);
      continue;
    }
    rows eta[Tile::keys_per_lane], evidence[Rule::keeps_diagonal ? Tile::keys_per_lane : 1];
    load_cells<Rule, Tile>(p, b, place.read, group, lane, eta, evidence);
    float const prior = prior_for<Rule>(p, b);
    bool const each_token = p.pooled && p.slot_out.present() && p.slot_out.rank == 2;
    std::int64_t first = 0;
    do {
      std::int64_t const left = place.tokens.length - first;
      int const count = left < (each_token ? 1 : Tile::tokens) ? static_cast<int>(left) : each_token ? 1 : Tile::tokens;
      __syncthreads();  // the previous tile's reads have been flushed
      stage<Rule, Tile>(p, b, place.tokens, first, count, thread, Tile::threads, staged);
      __syncthreads();
      for (int t = 0; t < count; ++t) {
        float key[Tile::keys_per_lane], query[Tile::keys_per_lane], alpha[Tile::keys_per_lane];
        detail::fetch<Tile>(staged.key[t], lane, key);
        detail::fetch<Tile>(staged.query[t], lane, query);
        if constexpr (staged_tokens<Rule, Tile>::gates > 1)
          detail::fetch<Tile>(staged.alpha[t], lane, alpha);
        else
          alpha[0] = staged.alpha[t][0];
        auto const read = observe_token<Rule, Variance, Tile>(lanes, staged, t, token<float>{key, query, alpha}, group, prior,
                                                              eta, evidence);
        if (lane == 0) {
#pragma unroll
          for (int r = 0; r < Tile::rows; ++r) {
            staged.mean[t][Tile::row_of(group, r)] = read.mean.row[r];
            if constexpr (Variance) staged.variance[t][Tile::row_of(group, r)] = read.variance.row[r];
          }
        }
      }
      __syncthreads();
      flush<Rule, Variance, Tile>(p, b, place.tokens, first, count, thread, Tile::threads, staged);
      first += count;
      std::int64_t const to =
          written_state(p, place, b.sequence, first - 1, b.reports && thread == 0 && b.head == 0);
      if (to >= 0) store_cells<Rule, Tile>(p, b, to, group, lane, eta, evidence);
    } while (first < place.tokens.length);
  }
}

}  // namespace PALIMPSA_CUDA_ABI
}  // namespace palimpsa::cuda
