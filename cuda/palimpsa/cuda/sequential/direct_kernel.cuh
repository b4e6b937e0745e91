#pragma once
/// @file
/// The one-token step, plainly: every thread takes its cells of the state, and its part of the token straight from the caller's memory,
/// observes, and stores. No shared memory and no barrier. stream_kernel.cuh is the same for states that move 16 bytes at a time.

#include "palimpsa/cuda/entry/abi.cuh"
#include "palimpsa/cuda/sequential/direct.hpp"
#include "palimpsa/cuda/execution.cuh"

namespace palimpsa::cuda {
inline namespace PALIMPSA_CUDA_ABI {

/// A step over states of any strides: one part of a head a block, nothing hidden behind anything.
/// The variance of the read is always worked out where there is one; memory is what takes the time.
template <class Rule, class Tile, class Storage>
static __global__ void __launch_bounds__(Tile::threads) direct_kernel(row_problem<Storage> const __grid_constant__ p) {
  using rows = row_set<float, Tile::rows>;
  int const thread = static_cast<int>(threadIdx.x), lane = thread % Tile::lanes, group = thread / Tile::lanes;
  for_each_head(p.shape, [&](std::int64_t sequence, std::int64_t head) {
    block_task const b = task_at<Tile>(p.shape, sequence, head, static_cast<int>(blockIdx.x));
    bool const reports = b.reports && thread == 0 && head == 0;
    sequence_place const place = place_of(p, sequence, reports);
    if (place.inert) return clear(p, b, place.tokens, thread, Tile::threads);
    rows eta[Tile::keys_per_lane], evidence[Rule::keeps_diagonal ? Tile::keys_per_lane : 1], v, beta;
    float key[Tile::keys_per_lane], query[Tile::keys_per_lane], alpha[Tile::keys_per_lane];
    load_cells<Rule, Tile>(p, b, place.read, group, lane, eta, evidence);
    flag_evidence<Rule, Tile>(evidence, p.status);
    float const prior = prior_for<Rule>(p, b);
    for (std::int64_t t = 0; t < place.tokens.length; ++t) {
      gather_token<Rule, Tile>(p, b, place.tokens, t, lane, key, query, alpha);
      gather_rows<Tile>(p, b, place.tokens, t, group, v, beta);
      auto const read =
          observe<Rule, Rule::keeps_diagonal>(warp_lanes<Tile>{}, eta, evidence, token<float>{key, query, alpha}, v, beta, prior);
      if (lane == 0) answer_rows<Rule::keeps_diagonal, Tile>(p, b, place.tokens, t, group, read);
      std::int64_t const to = written_state(p, place, sequence, t, reports);
      if (to >= 0) store_cells<Rule, Tile>(p, b, to, group, lane, eta, evidence);
    }
  });
}

}  // namespace PALIMPSA_CUDA_ABI
}  // namespace palimpsa::cuda
