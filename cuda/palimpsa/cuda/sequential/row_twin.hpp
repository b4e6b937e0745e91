#pragma once
/// @file
/// The kernels' twin on the host: the same tiles, phases and lanes, with one thread that plays all threads of a block in turn. What a
/// test without a GPU runs is therefore the very code of row_kernel.cuh, direct_kernel.cuh and head_kernel.cuh but for the barriers,
/// the warp's shuffles and the approximate reciprocal (stream_kernel.cuh must give direct_kernel's bits, which takes a GPU to see).
/// For tests: it is slow, it allocates, and it calculates nothing for a user.

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "palimpsa/cuda/sequential/block.hpp"
#include "palimpsa/cuda/sequential/direct.hpp"
#include "palimpsa/cuda/sequential/head_block.hpp"
#include "palimpsa/cuda/entry/problem.hpp"
#include "palimpsa/cuda/machine/tuning.hpp"

namespace palimpsa::cuda {

/// How a full memory solves on the host twin: as cuda::sequential has it.
struct twin_solver {
  int iterations = 0;        ///< at most this many CG steps a token; 0 = 4K
  float tolerance = 1e-7f;   ///< relative stop
};

namespace detail {

/// The registers of a block: cells of lane l of group g are eta[g][l·keys_per_lane ...].
template <class Rule, class Tile>
struct twin_registers {
  using rows = row_set<float, Tile::rows>;
  static constexpr int evidence_cells = Rule::keeps_diagonal ? Tile::keys : 1;
  rows eta[Tile::groups][Tile::keys];
  rows evidence[Tile::groups][evidence_cells];

  rows* evidence_of(int group, int lane) { return evidence[group] + (Rule::keeps_diagonal ? lane * Tile::keys_per_lane : 0); }
  rows* eta_of(int group, int lane) { return eta[group] + lane * Tile::keys_per_lane; }
};

/// The shared memory of a block.
template <class Rule, class Tile, class Storage>
struct twin_shared {
  arriving_tokens<Rule, Tile, Storage> arriving;
  staged_tokens<Rule, Tile> staged;
};

/// Memory that nobody has written: every float in it is a NaN.
template <class T>
std::unique_ptr<T> uninitialised() {
  static_assert(std::is_trivially_destructible_v<T>);
  auto memory = std::make_unique<T>();
  std::memset(static_cast<void*>(memory.get()), 0xff, sizeof(T));
  return memory;
}

template <class Tile, class F>
void each_thread(F f) {
  for (int thread = 0; thread < Tile::threads; ++thread) f(thread);
}

template <class Tile, class F>
void each_lane(F f) {
  for (int group = 0; group < Tile::groups; ++group)
    for (int lane = 0; lane < Tile::lanes; ++lane) f(group, lane);
}

/// row_kernel's body for one task.
template <class Rule, bool Variance, class Tile, class Storage>
void twin_scan_task(row_problem<Storage> const& p, std::int64_t task) {
  auto const registers = uninitialised<twin_registers<Rule, Tile>>();
  auto const shared = uninitialised<twin_shared<Rule, Tile, Storage>>();
  auto& arriving = shared->arriving;
  auto& staged = shared->staged;
  constexpr int threads = Tile::threads;
  block_plan<Rule, Storage> const plan = plan_of<Rule>(p, task_of<Tile>(p.shape, task));
  block_task const& b = plan.task;
  sequence_place const& place = plan.place;
  std::int64_t const tokens = place.tokens.length;
  each_lane<Tile>([&](int group, int lane) {
    load_cells<Rule, Tile>(p, b, place.read, group, lane, registers->eta_of(group, lane), registers->evidence_of(group, lane));
    flag_evidence<Rule, Tile>(registers->evidence_of(group, lane), p.status);
  });
  each_thread<Tile>([&](int thread) { clear_arrivals(b, p.beta.present(), thread, threads, arriving); });
  each_thread<Tile>([&](int thread) { bring(plan.from, 0, tile_count<Tile>(tokens, 0), thread, threads, arriving); });
  for (std::int64_t first = 0; first < tokens; first += Tile::tokens) {
    int const count = tile_count<Tile>(tokens, first);
    each_thread<Tile>([&](int thread) { widen(arriving, count, p.status, thread, threads, staged); });
    std::int64_t const next = first + Tile::tokens;
    each_thread<Tile>([&](int thread) { bring(plan.from, next, tile_count<Tile>(tokens, next), thread, threads, arriving); });
    for (int t = 0; t < count; ++t) {
      float key[Tile::keys], query[Tile::keys], alpha[Tile::keys];
      for (int lane = 0; lane < Tile::lanes; ++lane) {
        int const cell = lane * Tile::keys_per_lane;
        fetch<Tile>(staged.key[t], lane, key + cell);
        fetch<Tile>(staged.query[t], lane, query + cell);
        if constexpr (tile_gates<Rule, Tile> > 1) fetch<Tile>(staged.alpha[t], lane, alpha + cell);
      }
      if constexpr (tile_gates<Rule, Tile> == 1) alpha[0] = staged.alpha[t][0];
      for (int group = 0; group < Tile::groups; ++group) {
        auto const read = observe_token<Rule, Variance, Tile>(twin_lanes<Tile>{}, staged, t, token<float>{key, query, alpha}, group,
                                                              plan.prior, registers->eta_of(group, 0), registers->evidence_of(group, 0));
        for (int r = 0; r < Tile::rows; ++r) {
          staged.mean[t][Tile::row_of(group, r)] = read.mean.row[r];
          if constexpr (Variance) staged.variance[t][Tile::row_of(group, r)] = read.variance.row[r];
        }
      }
    }
    each_thread<Tile>(
        [&](int thread) { flush<Rule, Variance, Tile>(p, b, place.tokens, first, count, thread, threads, staged); });
  }
  each_lane<Tile>([&](int group, int lane) {
    store_cells<Rule, Tile>(p, b, b.sequence, group, lane, registers->eta_of(group, lane), registers->evidence_of(group, lane));
  });
}

/// direct_kernel's body for one task.
template <class Rule, bool Variance, class Tile, class Storage>
void twin_step_task(row_problem<Storage> const& p, std::int64_t task) {
  using rows = row_set<float, Tile::rows>;
  auto const registers = uninitialised<twin_registers<Rule, Tile>>();
  block_task const b = task_of<Tile>(p.shape, task);
  bool const reports = b.reports && b.head == 0;
  sequence_place const place = place_of(p, b.sequence, reports);
  if (place.inert) {
    each_thread<Tile>([&](int thread) { clear(p, b, place.tokens, thread, Tile::threads); });
    return;
  }
  each_lane<Tile>([&](int group, int lane) {
    load_cells<Rule, Tile>(p, b, place.read, group, lane, registers->eta_of(group, lane), registers->evidence_of(group, lane));
    flag_evidence<Rule, Tile>(registers->evidence_of(group, lane), p.status);
  });
  float const prior = prior_for<Rule>(p, b);
  for (std::int64_t t = 0; t < place.tokens.length; ++t) {
    float key[Tile::keys], query[Tile::keys], alpha[Tile::keys];
    for (int lane = 0; lane < Tile::lanes; ++lane) {
      int const cell = lane * Tile::keys_per_lane;
      gather_token<Rule, Tile>(p, b, place.tokens, t, lane, key + cell, query + cell, alpha + cell);
    }
    for (int group = 0; group < Tile::groups; ++group) {
      rows v, beta;
      gather_rows<Tile>(p, b, place.tokens, t, group, v, beta);
      auto const read = observe<Rule, Variance>(twin_lanes<Tile>{}, registers->eta_of(group, 0), registers->evidence_of(group, 0),
                                                token<float>{key, query, alpha}, v, beta, prior);
      answer_rows<Variance, Tile>(p, b, place.tokens, t, group, read);
    }
    std::int64_t const to = written_state(p, place, b.sequence, t, reports);
    if (to < 0) continue;
    each_lane<Tile>([&](int group, int lane) {
      store_cells<Rule, Tile>(p, b, to, group, lane, registers->eta_of(group, lane), registers->evidence_of(group, lane));
    });
  }
}

/// All tasks of a problem, whose tile is Tile.
template <class Rule, bool Variance, class Tile, class Storage>
void twin_tasks(row_problem<Storage> const& p) {
  for (std::int64_t task = 0; task < task_count<Tile>(p.shape); ++task) {
    if (p.pooled)
      twin_step_task<Rule, Variance, Tile>(p, task);
    else
      twin_scan_task<Rule, Variance, Tile>(p, task);
  }
}

/// The tile that launch_rows picks.
template <class Rule, class Storage>
void twin_rows(row_problem<Storage> const& p) {
  auto const run = [&](auto tile_value) {
    using tile_type = decltype(tile_value);
    if constexpr (Rule::keeps_diagonal)
      if (p.out_variance.present()) return twin_tasks<Rule, true, tile_type>(p);
    twin_tasks<Rule, false, tile_type>(p);
  };
  if (p.pooled)
    with_step_tile(p.shape.keys, run);
  else
    with_tile(p.shape.keys, [&](auto tile_value) { run(fitting_tile<Rule, decltype(tile_value), Storage>{}); });
}

}  // namespace detail

/// Runs a problem, all of whose memory is the host's, as the kernels of cuda::sequential would.
/// Storage is the type of q, k, v, out. Nothing is checked but what the kernels check themselves; p.status is a word of the host.
template <class Rule, class Storage>
void run_twin(row_problem<Storage> p, twin_solver solver = {}) {
  if (p.pooled && p.shape.tokens == 0) return;
  if constexpr (Rule::keeps_full) {
    scan_shape const& s = p.shape;
    auto const K = static_cast<int>(s.keys);
    float const unwritten = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> solved(static_cast<std::size_t>(s.batch * s.tokens * s.value_heads * s.keys), unwritten);
    std::vector<float> matrix(static_cast<std::size_t>(K * K), unwritten);
    std::vector<float> vectors(static_cast<std::size_t>(head_memory::vectors(K)), unwritten);
    head_problem<Storage> heads;
    heads.rows = p;
    heads.solved = {solved.data(), {s.batch, s.tokens, s.value_heads, s.keys}};
    heads.most_iterations = solver.iterations > 0 ? solver.iterations : 4 * K;
    heads.tolerance = solver.tolerance;
    for (std::int64_t task = 0; task < s.sequences * s.value_heads; ++task)
      run_head<Rule>(team_of_one{}, heads, task / s.value_heads, task % s.value_heads,
                     head_memory::over(matrix.data(), vectors.data(), K));
    p.solved = heads.solved;
    detail::twin_rows<Rule>(p);
  } else {
    detail::twin_rows<Rule>(p);
  }
}

}  // namespace palimpsa::cuda
