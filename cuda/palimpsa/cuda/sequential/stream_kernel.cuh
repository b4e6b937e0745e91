#pragma once
/// @file
/// The one-token step at the speed of memory, for states whose rows are contiguous and aligned to 16 bytes. The state is all that
/// matters: 2 · V·K · 4 bytes in and out a head and state, so a block walks along the rows of a head with little more than the
/// recurrence between a load and a store, and the next rows are on their way while these observe.

#include "palimpsa/cuda/entry/abi.cuh"
#include "palimpsa/cuda/sequential/direct.hpp"
#include "palimpsa/cuda/execution.cuh"

namespace palimpsa::cuda {
inline namespace PALIMPSA_CUDA_ABI {

/// A thread's walk down a V×K state: pointers move from part to part, and nothing is worked out twice.
template <class Tile, class T>
struct state_walk {
  T* at = nullptr;            ///< the lane's first cell of the group's first row of this part
  std::int64_t row_step = 0;  ///< from row to row

  state_walk() = default;
  /// Starts at a row.
  __device__ state_walk(plane<T> const& state, std::int64_t first_row, int group, int lane)
      : at(detail::first_cell<Tile>(state, first_row, group, lane)), row_step(state.row) {}
  /// To the next part.
  __device__ void advance() { at += Tile::block_rows * row_step; }
};

/// A thread's walk along the channels of one token: v, β, out or the variance.
template <class Tile, class T>
struct channel_walk {
  T* at = nullptr;            ///< the group's first row of this part; null = absent
  std::int64_t step = 0;      ///< from channel to channel

  channel_walk() = default;
  /// Starts at a row.
  __device__ channel_walk(plane<T> const& tensor, std::int64_t first_row, int group) : step(tensor.column) {
    if (tensor.present()) at = &tensor(0, first_row + Tile::row_of(group, 0));
  }
  /// The thread's row r of this part.
  __device__ T& operator[](int r) const { return at[r * Tile::groups * step]; }
  /// To the next part.
  __device__ void advance() {
    if (at != nullptr) at += Tile::block_rows * step;
  }
};

/// One thread's cells of a part of a head, and what those rows are about to observe, as it arrives: widening a value here would make
/// the thread wait for it.
template <class Rule, class Tile, class Storage>
struct stream_registers {
  using rows = row_set<float, Tile::rows>;  ///< a thread's rows
  /// @{
  /// Of this part.
  rows eta[Tile::keys_per_lane];
  rows evidence[Rule::keeps_diagonal ? Tile::keys_per_lane : 1];
  Storage value[Tile::rows];
  float beta[Tile::rows];
  /// @}
};

/// Where a thread reads while it walks.
template <class Rule, class Tile, class Storage>
struct stream_walks {
  /// @{
  /// One a tensor.
  state_walk<Tile, float const> eta, evidence;
  channel_walk<Tile, Storage const> value;
  channel_walk<Tile, float const> beta;
  /// @}

  /// Starts at the task's first row.
  __device__ stream_walks(row_problem<Storage> const& p, block_task const& b, sequence_place const& place, int group, int lane) {
    eta = {state_of(p.eta_in, place.read, b.head), b.first_row, group, lane};
    if constexpr (Rule::keeps_diagonal) evidence = {state_of(p.evidence_in, place.read, b.head), b.first_row, group, lane};
    value = {on_device(tokens_of(p.v, place.tokens, b.head)), b.first_row, group};
    beta = {on_device(tokens_of(p.beta, place.tokens, b.head)), b.first_row, group};
  }

  /// Sends for a part of which `left` rows exist, and moves on to the next.
  __device__ __forceinline__ void load(int left, int keys, int group, int lane, stream_registers<Rule, Tile, Storage>& into) {
    detail::load_quads<Tile>(eta.at, eta.row_step, left, keys, group, lane, into.eta);
    eta.advance();
    if constexpr (Rule::keeps_diagonal) {
      detail::load_quads<Tile>(evidence.at, evidence.row_step, left, keys, group, lane, into.evidence);
      evidence.advance();
    }
    PALIMPSA_UNROLLED
    for (int r = 0; r < Tile::rows; ++r) {
      bool const exists = Tile::row_of(group, r) < left;
      into.value[r] = Storage{};
      into.beta[r] = 1;
      if (exists) into.value[r] = value[r];
      if (exists && beta.at != nullptr) into.beta[r] = beta[r];
    }
    value.advance();
    beta.advance();
  }
};

/// Runs a step of one token.
template <class Rule, bool Variance, class Tile, class Storage>
static __global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    stream_kernel(row_problem<Storage> const __grid_constant__ p, int parts_a_block) {
  using rows = row_set<float, Tile::rows>;
  constexpr int cells = Tile::keys_per_lane;
  int const thread = static_cast<int>(threadIdx.x), lane = thread % Tile::lanes, group = thread / Tile::lanes;
  int const first = static_cast<int>(blockIdx.x) * parts_a_block, keys = static_cast<int>(p.shape.keys);
  for_each_head(p.shape, [&](std::int64_t sequence, std::int64_t head) {
    block_task const b = task_at<Tile>(p.shape, sequence, head, first);
    bool const reports = b.reports && thread == 0 && head == 0;
    sequence_place const place = place_of(p, sequence, reports);
    int left = static_cast<int>(p.shape.values - b.first_row);
    int const stop = left - parts_a_block * Tile::block_rows > 0 ? left - parts_a_block * Tile::block_rows : 0;
    if (place.inert) {
      for (int part = first; left > stop; ++part, left -= Tile::block_rows)
        clear(p, task_at<Tile>(p.shape, sequence, head, part), place.tokens, thread, Tile::threads);
      return;
    }
    stream_walks<Rule, Tile, Storage> walks(p, b, place, group, lane);
    stream_registers<Rule, Tile, Storage> now, coming;
    walks.load(left, keys, group, lane, coming);
    float key[cells], query[cells], alpha[cells];
    gather_token<Rule, Tile>(p, b, place.tokens, 0, lane, key, query, alpha);
    float const prior = prior_for<Rule>(p, b);
    std::int64_t const to = written_state(p, place, sequence, 0, reports);
    state_walk<Tile, float> eta_to, evidence_to;
    if (to >= 0) {
      eta_to = {state_of(p.eta_out, to, head), b.first_row, group, lane};
      if constexpr (Rule::keeps_diagonal) evidence_to = {state_of(p.evidence_out, to, head), b.first_row, group, lane};
    }
    channel_walk<Tile, Storage> out(on_device(tokens_of(p.out, place.tokens, head)), b.first_row, group);
    channel_walk<Tile, float> variance(on_device(tokens_of(p.out_variance, place.tokens, head)), b.first_row, group);
    for (; left > stop; left -= Tile::block_rows) {
      now = coming;
      if (left - Tile::block_rows > stop) walks.load(left - Tile::block_rows, keys, group, lane, coming);
      rows v, beta;
      PALIMPSA_UNROLLED
      for (int r = 0; r < Tile::rows; ++r) {
        v.row[r] = storage<Storage>::load(now.value[r]);
        beta.row[r] = now.beta[r];
        if (beta.row[r] < 0) flag(p.status, negative_beta);
      }
      flag_evidence<Rule, Tile>(now.evidence, p.status);
      auto const read =
          observe<Rule, Variance>(warp_lanes<Tile>{}, now.eta, now.evidence, token<float>{key, query, alpha}, v, beta, prior);
      PALIMPSA_UNROLLED
      for (int r = 0; r < Tile::rows; ++r) {
        if (lane != 0 || Tile::row_of(group, r) >= left) continue;
        out[r] = storage<Storage>::store(read.mean.row[r] * p.scale);
        if constexpr (Variance) variance[r] = read.variance.row[r] * p.scale * p.scale;
      }
      if (to >= 0) {
        detail::store_quads<Tile>(now.eta, eta_to.at, eta_to.row_step, left, keys, group, lane);
        eta_to.advance();
        if constexpr (Rule::keeps_diagonal) {
          detail::store_quads<Tile>(now.evidence, evidence_to.at, evidence_to.row_step, left, keys, group, lane);
          evidence_to.advance();
        }
      }
      out.advance();
      variance.advance();
    }
  });
}

}  // namespace PALIMPSA_CUDA_ABI
}  // namespace palimpsa::cuda
