#pragma once
/// @file
/// What a block of threads does, phase by phase, for the rows it owns: load the state, stage a tile of tokens, let every row observe
/// them, flush the reads, leave the state. Every phase is host-device and takes the thread's number, so that a test without a GPU
/// runs the very same code (row_twin.hpp) that the kernel runs (row_kernel.cuh).

#include <cstdint>

#include "palimpsa/cuda/lanes.hpp"
#include "palimpsa/cuda/problem.hpp"
#include "palimpsa/cuda/tuning.hpp"
#include "palimpsa/recurrence.hpp"
#include "palimpsa/rule.hpp"
#include "palimpsa/storage.hpp"

namespace palimpsa::cuda {

/// A tile of tokens in shared memory, widened to float: padded keys are zero, which every rule carries along harmlessly.
template <class Rule, class Tile>
struct staged_tokens {
  static constexpr int gates = Rule::forget_type::scope == gate_scope::key ? Tile::keys : 1;  ///< a token has so many
  alignas(16) float key[Tile::tokens][Tile::keys];
  alignas(16) float query[Tile::tokens][Tile::keys];
  alignas(16) float alpha[Tile::tokens][gates];
  float value[Tile::tokens][Tile::block_rows];
  float beta[Tile::tokens][Tile::block_rows];
  float mean[Tile::tokens][Tile::block_rows];
  float variance[Tile::tokens][Tile::block_rows];
};

/// One thread's part of the state: its lanes' cells of its rows.
template <class Rule, class Tile, int Cells>
struct cells {
  using rows = row_set<float, Tile::rows>;
  rows eta[Cells];
  rows evidence[Rule::keeps_diagonal ? Cells : 1];
};

/// The head and rows a block works on.
struct block_task {
  std::int64_t sequence, head, first_row;
  int rows;           ///< rows of the head from first_row on, at most the block's
  bool reports;       ///< one block a sequence flags what it finds
};

/// Task number -> sequence, head, rows. Tasks of one head are neighbours, so that its keys stay in the L2 cache.
template <class Tile>
PALIMPSA_HD block_task task_of(scan_shape const& s, std::int64_t task) {
  std::int64_t const parts = (s.values + Tile::block_rows - 1) / Tile::block_rows;
  std::int64_t const part = task % parts, head = task / parts % s.value_heads;
  std::int64_t const first = part * Tile::block_rows, left = s.values - first;
  return {task / parts / s.value_heads, head, first, left < Tile::block_rows ? static_cast<int>(left) : Tile::block_rows,
          part == 0};
}

/// How many tasks a problem has.
template <class Tile>
PALIMPSA_HD std::int64_t task_count(scan_shape const& s) {
  return s.sequences * s.value_heads * ((s.values + Tile::block_rows - 1) / Tile::block_rows);
}

namespace detail {

/// Four floats that move together.
struct alignas(16) quad {
  float x[4];
};

/// Whether 16-byte accesses to rows of a state are allowed: unit stride along the keys, everything else a multiple of four.
template <class T>
PALIMPSA_HD bool moves_in_quads(plane<T> const& state, std::int64_t keys) {
  return state.column == 1 && state.row % 4 == 0 && keys % 4 == 0 && reinterpret_cast<std::uintptr_t>(state.data) % 16 == 0;
}

/// One lane's cells of one row from a V×K state. Padded cells and rows are zero.
template <class Tile, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void load_row(plane<float const> state, std::int64_t row, bool exists, std::int64_t keys,
                                          bool quads, int lane, int r, Rows* into) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = 0; i < Tile::keys_per_lane; i += 4) {
    int const key = Tile::key_of(lane, i);
    quad q{};
    if (exists && key < keys) {
      float const* const at = state.data + row * state.row + key * state.column;
      if (quads) {
        q = *reinterpret_cast<quad const*>(at);
      } else {
        for (int c = 0; c < 4; ++c)
          if (key + c < keys) q.x[c] = at[c * state.column];
      }
    }
    for (int c = 0; c < 4; ++c) into[i + c].row[r] = q.x[c];
  }
}

/// The way back.
template <class Tile, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void store_row(Rows const* from, plane<float> state, std::int64_t row, std::int64_t keys,
                                           bool quads, int lane, int r) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = 0; i < Tile::keys_per_lane; i += 4) {
    int const key = Tile::key_of(lane, i);
    if (key >= keys) continue;
    float* const at = state.data + row * state.row + key * state.column;
    quad q;
    for (int c = 0; c < 4; ++c) q.x[c] = from[i + c].row[r];
    if (quads) {
      *reinterpret_cast<quad*>(at) = q;
    } else {
      for (int c = 0; c < 4; ++c)
        if (key + c < keys) at[c * state.column] = q.x[c];
    }
  }
}

/// One lane's cells of a staged token.
template <class Tile>
PALIMPSA_HD PALIMPSA_INLINE void fetch(float const* staged, int lane, float* into) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = 0; i < Tile::keys_per_lane; i += 4) {
    quad const q = *reinterpret_cast<quad const*>(staged + Tile::key_of(lane, i));
    for (int c = 0; c < 4; ++c) into[i + c] = q.x[c];
  }
}

}  // namespace detail

/// The state of a group's rows, from where the sequence starts.
template <class Rule, class Tile, class Storage, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void load_cells(row_problem<Storage> const& p, block_task const& b, std::int64_t from, int group,
                                            int lane, Rows* eta, Rows* evidence) {
  auto const load = [&](view<float const> const& states, Rows* into) {
    plane<float const> const state = from < 0 ? plane<float const>{} : state_of(states, from, b.head);
    bool const quads = detail::moves_in_quads(state, p.shape.keys);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int r = 0; r < Tile::rows; ++r) {
      int const row = Tile::row_of(group, r);
      detail::load_row<Tile>(state, b.first_row + row, state.present() && row < b.rows, p.shape.keys, quads, lane, r, into);
    }
  };
  load(p.eta_in, eta);
  if constexpr (Rule::keeps_diagonal) load(p.evidence_in, evidence);
}

/// The state of a group's rows, to state (or slot) `to`.
template <class Rule, class Tile, class Storage, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void store_cells(row_problem<Storage> const& p, block_task const& b, std::int64_t to, int group,
                                             int lane, Rows const* eta, Rows const* evidence) {
  auto const store = [&](view<float> const& states, Rows const* from) {
    plane<float> const state = state_of(states, to, b.head);
    bool const quads = detail::moves_in_quads(state, p.shape.keys);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int r = 0; r < Tile::rows; ++r) {
      int const row = Tile::row_of(group, r);
      if (state.present() && row < b.rows)
        detail::store_row<Tile>(from, state, b.first_row + row, p.shape.keys, quads, lane, r);
    }
  };
  store(p.eta_out, eta);
  if constexpr (Rule::keeps_diagonal) store(p.evidence_out, evidence);
}

/// Widens tokens [first, first + count) of a sequence into shared memory; `threads` callers share the work.
template <class Rule, class Tile, class Storage>
PALIMPSA_HD void stage(row_problem<Storage> const& p, block_task const& b, segment const& s, std::int64_t first, int count,
                       int thread, int threads, staged_tokens<Rule, Tile>& into) {
  std::int64_t const key_head = b.head / p.shape.group();
  int const keys = static_cast<int>(p.shape.keys);
  plane<Storage const> const k = tokens_of(p.k, s, key_head), q = tokens_of(p.q, s, key_head), v = tokens_of(p.v, s, b.head);
  plane<float const> const x = tokens_of(p.solved, s, b.head), beta = tokens_of(p.beta, s, b.head),
                           gate = gates_of<typename Rule::forget_type>(p.log_decay, s, b.head);
  for (int e = thread; e < count * Tile::keys; e += threads) {
    int const t = e / Tile::keys, j = e % Tile::keys;
    float key = 0, query = 0;
    if (j < keys) {
      key = storage<Storage>::load(k(first + t, j));
      if constexpr (Rule::keeps_full)
        query = x(first + t, j);
      else
        query = storage<Storage>::load(q(first + t, j));
    }
    into.key[t][j] = key;
    into.query[t][j] = query;
  }
  constexpr int gates = staged_tokens<Rule, Tile>::gates;
  for (int e = thread; e < count * gates; e += threads) {
    int const t = e / gates, j = e % gates;
    float alpha = 1;
    if (gate.present() && j < keys) {
      float const log_decay = gate(first + t, j);
      if (log_decay > 0) flag(p.status, status::positive_gate);
      alpha = Rule::forget_type::retain(log_decay);
    }
    into.alpha[t][j] = alpha;
  }
  for (int e = thread; e < count * Tile::block_rows; e += threads) {
    int const t = e / Tile::block_rows, i = e % Tile::block_rows;
    bool const exists = i < b.rows;
    into.value[t][i] = exists ? storage<Storage>::load(v(first + t, b.first_row + i)) : 0.0f;
    into.beta[t][i] = !exists ? 0.0f : beta.present() ? beta(first + t, b.first_row + i) : 1.0f;
  }
}

/// One staged token for a group's rows: the recurrence itself. `cells` keys, queries (and gates) have been fetched.
template <class Rule, bool Variance, class Tile, class Lanes, class Rows>
PALIMPSA_HD PALIMPSA_INLINE answer<Rows, Variance> observe_token(Lanes lanes, staged_tokens<Rule, Tile> const& s, int t,
                                                                 token<float> x, int group, float prior, Rows* eta,
                                                                 Rows* evidence) {
  Rows v, beta;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int r = 0; r < Tile::rows; ++r) {
    v.row[r] = s.value[t][Tile::row_of(group, r)];
    beta.row[r] = s.beta[t][Tile::row_of(group, r)];
  }
  return observe<Rule, Variance>(lanes, eta, evidence, x, v, beta, prior);
}

/// The reads of a tile to the caller's memory.
template <class Rule, bool Variance, class Tile, class Storage>
PALIMPSA_HD void flush(row_problem<Storage> const& p, block_task const& b, segment const& s, std::int64_t first, int count,
                       int thread, int threads, staged_tokens<Rule, Tile> const& from) {
  plane<Storage> const out = tokens_of(p.out, s, b.head);
  plane<float> const variance = tokens_of(p.out_variance, s, b.head);
  for (int e = thread; e < count * Tile::block_rows; e += threads) {
    int const t = e / Tile::block_rows, i = e % Tile::block_rows;
    if (i >= b.rows) continue;
    out(first + t, b.first_row + i) = storage<Storage>::store(from.mean[t][i] * p.scale);
    if constexpr (Variance) variance(first + t, b.first_row + i) = from.variance[t][i] * (p.scale * p.scale);
  }
}

/// Zeros for the outputs of an inert row.
template <class Storage>
PALIMPSA_HD void clear(row_problem<Storage> const& p, block_task const& b, segment const& s, int thread, int threads) {
  plane<Storage> const out = tokens_of(p.out, s, b.head);
  plane<float> const variance = tokens_of(p.out_variance, s, b.head);
  for (std::int64_t t = 0; t < s.length; ++t)
    for (int i = thread; i < b.rows; i += threads) {
      out(t, b.first_row + i) = storage<Storage>::store(0.0f);
      if (variance.present()) variance(t, b.first_row + i) = 0.0f;
    }
}

/// The head's prior; flagged where it is not above 0.
template <class Rule, class Storage>
PALIMPSA_HD float prior_for(row_problem<Storage> const& p, block_task const& b) {
  if constexpr (Rule::keeps_diagonal) {
    float const prior = *p.prior.at(b.head);
    if (b.reports && !(prior > 0)) flag(p.status, status::bad_prior);
    return prior;
  } else {
    return 0;
  }
}

}  // namespace palimpsa::cuda
