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

/// Runs the tasks of a step. A block takes some parts of a head one after another, the next part's state on its way while this one
/// observes, so that finding the work and the token once serves them all. n tokens a call and n calls of one run the same
/// instructions in the same order.
template <class Rule, bool Variance, class Tile, class Storage>
static __global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    direct_kernel(row_problem<Storage> const __grid_constant__ p, int parts_a_task) {
  using rows = row_set<float, Tile::rows>;
  constexpr int cells = Tile::keys_per_lane, evidence_cells = Rule::keeps_diagonal ? Tile::keys_per_lane : 1;
  int const thread = static_cast<int>(threadIdx.x), lane = thread % Tile::lanes, group = thread / Tile::lanes;
  std::int64_t const parts = parts_of<Tile>(p.shape), runs = detail::divide(parts + parts_a_task - 1, parts_a_task);
  std::int64_t const tasks = p.shape.sequences * p.shape.value_heads * runs;
  for (std::int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    std::int64_t const index = detail::divide(task, runs), run = task - index * runs;
    int const first = static_cast<int>(run) * parts_a_task,
              end = first + parts_a_task < parts ? first + parts_a_task : static_cast<int>(parts);
    block_task b = task_of<Tile>(p.shape, index * parts + first);
    bool const reports = b.reports && thread == 0 && b.head == 0;
    sequence_place const place = place_of(p, b.sequence, reports);
    std::int64_t const tokens = place.tokens.length;
    if (place.inert || tokens == 0) {
      for (int part = first; part < end; ++part) clear(p, part_of<Tile>(p.shape, b, part), place.tokens, thread, Tile::threads);
      continue;
    }
    rows eta[cells], evidence[evidence_cells], v, beta;
    float key[cells], query[cells], alpha[cells];
    load_cells<Rule, Tile>(p, b, place.read, group, lane, eta, evidence);
    gather_token<Rule, Tile>(p, b, place.tokens, 0, lane, key, query, alpha);
    gather_rows<Tile>(p, b, place.tokens, 0, group, v, beta);
    float const prior = prior_for<Rule>(p, b);
    bool const snapshots = p.slot_out.present() && p.slot_out.rank == 2;
    std::int64_t const last = written_state(p, place, b.sequence, tokens - 1, reports);
    for (int part = first; part < end; ++part) {
      block_task const next = part_of<Tile>(p.shape, b, part + 1);
      rows next_eta[cells], next_evidence[evidence_cells], next_v, next_beta;
      if (part + 1 < end) {
        load_cells<Rule, Tile>(p, next, place.read, group, lane, next_eta, next_evidence);
        gather_rows<Tile>(p, next, place.tokens, 0, group, next_v, next_beta);
      }
      for (std::int64_t t = 0; t < tokens; ++t) {
        if (tokens > 1) {
          gather_token<Rule, Tile>(p, b, place.tokens, t, lane, key, query, alpha);
          gather_rows<Tile>(p, b, place.tokens, t, group, v, beta);
        }
        auto const read =
            observe<Rule, Variance>(warp_lanes<Tile>{}, eta, evidence, token<float>{key, query, alpha}, v, beta, prior);
        if (lane == 0) answer_rows<Variance, Tile>(p, b, place.tokens, t, group, read);
        std::int64_t const to = t + 1 == tokens ? last
                                : snapshots     ? written_state(p, place, b.sequence, t, reports)
                                                : -1;
        if (to >= 0) store_cells<Rule, Tile>(p, b, to, group, lane, eta, evidence);
      }
      if (part + 1 < end) {
        PALIMPSA_UNROLLED
        for (int i = 0; i < cells; ++i) eta[i] = next_eta[i];
        PALIMPSA_UNROLLED
        for (int i = 0; i < evidence_cells; ++i) evidence[i] = next_evidence[i];
        v = next_v;
        beta = next_beta;
        b = next;
      }
    }
  }
}

}  // namespace PALIMPSA_CUDA_ABI
}  // namespace palimpsa::cuda
