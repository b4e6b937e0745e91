#pragma once
/// @file
/// The generic scan: any rule whose rows need nothing from each other, one block for some rows of one head, tokens in order.
/// The phases are block.hpp's; this file adds threads, shared memory and barriers.

#include "palimpsa/cuda/entry/abi.cuh"
#include "palimpsa/cuda/sequential/block.hpp"
#include "palimpsa/cuda/execution.cuh"

namespace palimpsa::cuda {
inline namespace PALIMPSA_CUDA_ABI {

/// Runs the tasks of a scan, each from its first token to its last. While rows observe one tile of tokens, the next is on its way.
template <class Rule, bool Variance, class Tile, class Storage>
static __global__ void __launch_bounds__(Tile::threads, Tile::blocks) row_kernel(row_problem<Storage> const __grid_constant__ p) {
  using rows = row_set<float, Tile::rows>;
  __shared__ arriving_tokens<Rule, Tile, Storage> arriving;
  __shared__ staged_tokens<Rule, Tile> staged;
  // The plan lies in shared memory: every register is needed for the state.
  __shared__ alignas(16) unsigned char plan_bytes[sizeof(block_plan<Rule, Storage>)];
  auto& plan = *reinterpret_cast<block_plan<Rule, Storage>*>(plan_bytes);
  int const thread = static_cast<int>(threadIdx.x), lane = thread % Tile::lanes, group = thread / Tile::lanes;

  for_each_head(p.shape, [&](std::int64_t sequence, std::int64_t head) {
    __syncthreads();  // the last head's plan and tokens have been used
    if (thread == 0) plan = plan_of<Rule>(p, task_at<Tile>(p.shape, sequence, head, static_cast<int>(blockIdx.x)));
    __syncthreads();
    clear_arrivals(plan.task, p.beta.present(), thread, Tile::threads, arriving);
    rows eta[Tile::keys_per_lane], evidence[Rule::keeps_diagonal ? Tile::keys_per_lane : 1];
    load_cells<Rule, Tile>(p, plan.task, plan.place.read, group, lane, eta, evidence);
    flag_evidence<Rule, Tile>(evidence, p.status);
    __syncthreads();
    bring(plan.from, 0, tile_count<Tile>(plan.place.tokens.length, 0), thread, Tile::threads, arriving);
    for (std::int64_t first = 0; first < plan.place.tokens.length; first += Tile::tokens) {
      int const count = tile_count<Tile>(plan.place.tokens.length, first);
      detail::arrived();
      __syncthreads();  // the tile is here, and the last one's reads are complete
      widen(arriving, count, p.status, thread, Tile::threads, staged);
      if (first > 0)
        flush<Rule, Variance, Tile>(p, plan.task, plan.place.tokens, first - Tile::tokens, Tile::tokens, thread, Tile::threads,
                                    staged);
      __syncthreads();
      bring(plan.from, first + Tile::tokens, tile_count<Tile>(plan.place.tokens.length, first + Tile::tokens), thread,
            Tile::threads, arriving);
      for (int t = 0; t < count; ++t) {
        float key[Tile::keys_per_lane], query[Tile::keys_per_lane], alpha[Tile::keys_per_lane];
        detail::fetch<Tile>(staged.key[t], lane, key);
        detail::fetch<Tile>(staged.query[t], lane, query);
        if constexpr (tile_gates<Rule, Tile> > 1)
          detail::fetch<Tile>(staged.alpha[t], lane, alpha);
        else
          alpha[0] = staged.alpha[t][0];
        auto const read = observe_token<Rule, Variance, Tile>(warp_lanes<Tile>{}, staged, t, token<float>{key, query, alpha},
                                                              group, plan.prior, eta, evidence);
        if (lane == 0) {
          PALIMPSA_UNROLLED
          for (int r = 0; r < Tile::rows; ++r) {
            staged.mean[t][Tile::row_of(group, r)] = read.mean.row[r];
            if constexpr (Variance) staged.variance[t][Tile::row_of(group, r)] = read.variance.row[r];
          }
        }
      }
    }
    __syncthreads();
    if (plan.place.tokens.length > 0) {
      std::int64_t const last = (plan.place.tokens.length - 1) / Tile::tokens * Tile::tokens;
      flush<Rule, Variance, Tile>(p, plan.task, plan.place.tokens, last, static_cast<int>(plan.place.tokens.length - last), thread,
                                  Tile::threads, staged);
    }
    store_cells<Rule, Tile>(p, plan.task, plan.task.sequence, group, lane, eta, evidence);
  });
}

}  // namespace PALIMPSA_CUDA_ABI
}  // namespace palimpsa::cuda
