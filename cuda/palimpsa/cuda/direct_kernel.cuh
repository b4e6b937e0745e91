#pragma once
/// @file
/// The one-token step: every thread takes its cells of the state, and its part of the token straight from the caller's memory, all in
/// one wave of loads, observes, and stores. No shared memory and no barrier, since the state's bytes are all that matters.
/// The arithmetic and its order are the scan's.

#include "palimpsa/cuda/abi.cuh"
#include "palimpsa/cuda/direct.hpp"
#include "palimpsa/cuda/execution.cuh"

namespace palimpsa::cuda {
inline namespace PALIMPSA_CUDA_ABI {

/// Runs the tasks of a step, one a block. n tokens a call and n calls of one run the same instructions in the same order.
template <class Rule, class Tile, class Storage>
static __global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    direct_kernel(row_problem<Storage> const __grid_constant__ p) {
  using rows = row_set<float, Tile::rows>;
  int const thread = static_cast<int>(threadIdx.x), lane = thread % Tile::lanes, group = thread / Tile::lanes;
  std::int64_t const tasks = task_count<Tile>(p.shape);
  for (std::int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    block_task const b = task_of<Tile>(p.shape, task);
    bool const reports = b.reports && thread == 0 && b.head == 0;
    sequence_place const place = place_of(p, b.sequence, reports);
    if (place.inert) {
      clear(p, b, place.tokens, thread, Tile::threads);
      continue;
    }
    rows eta[Tile::keys_per_lane], evidence[Rule::keeps_diagonal ? Tile::keys_per_lane : 1];
    load_cells<Rule, Tile>(p, b, place.read, group, lane, eta, evidence);
    float const prior = prior_for<Rule>(p, b);
    for (std::int64_t t = 0; t < place.tokens.length; ++t) {
      float key[Tile::keys_per_lane], query[Tile::keys_per_lane], alpha[Tile::keys_per_lane];
      gather_token<Rule, Tile>(p, b, place.tokens, t, lane, key, query, alpha);
      rows v, beta;
      gather_rows<Tile>(p, b, place.tokens, t, group, v, beta);
      auto const read =
          observe<Rule, Rule::keeps_diagonal>(warp_lanes<Tile>{}, eta, evidence, token<float>{key, query, alpha}, v, beta, prior);
      if (lane == 0) answer_rows<Rule::keeps_diagonal, Tile>(p, b, place.tokens, t, group, read);
      std::int64_t const to = written_state(p, place, b.sequence, t, reports);
      if (to >= 0) store_cells<Rule, Tile>(p, b, to, group, lane, eta, evidence);
    }
  }
}

}  // namespace PALIMPSA_CUDA_ABI
}  // namespace palimpsa::cuda
