#pragma once
/// @file
/// A thread's part of the state: its lane's cells of its rows, in registers, and the way there and back. Host and device.

#include <cstdint>

#include "palimpsa/cuda/lanes.hpp"
#include "palimpsa/cuda/task.hpp"
#include "palimpsa/rule.hpp"

namespace palimpsa::cuda {

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
  PALIMPSA_UNROLLED
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
  PALIMPSA_UNROLLED
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

}  // namespace detail

/// The state of a group's rows, from where the sequence starts.
template <class Rule, class Tile, class Storage, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void load_cells(row_problem<Storage> const& p, block_task const& b, std::int64_t from, int group,
                                            int lane, Rows* eta, Rows* evidence) {
  auto const load = [&](view<float const> const& states, Rows* into) {
    plane<float const> const state = from < 0 ? plane<float const>{} : state_of(states, from, b.head);
    bool const quads = detail::moves_in_quads(state, p.shape.keys);
    PALIMPSA_UNROLLED
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
    PALIMPSA_UNROLLED
    for (int r = 0; r < Tile::rows; ++r) {
      int const row = Tile::row_of(group, r);
      if (state.present() && row < b.rows)
        detail::store_row<Tile>(from, state, b.first_row + row, p.shape.keys, quads, lane, r);
    }
  };
  store(p.eta_out, eta);
  if constexpr (Rule::keeps_diagonal) store(p.evidence_out, evidence);
}

}  // namespace palimpsa::cuda
