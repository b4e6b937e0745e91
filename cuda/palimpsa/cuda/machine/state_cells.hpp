#pragma once
/// @file
/// A thread's part of the state: its lane's cells of its rows, in registers, and the way there and back. Host and device.

#include <cstdint>

#include "palimpsa/cuda/machine/lanes.hpp"
#include "palimpsa/cuda/entry/task.hpp"
#include "palimpsa/rule.hpp"

namespace palimpsa::cuda {

namespace detail {

/// Four floats that move together.
struct alignas(16) quad {
  float x[4];
};

/// Reads or writes a state through the global window, past the first-level cache: a token touches it once.
PALIMPSA_HD PALIMPSA_INLINE quad read_state(quad const* at) {
#if defined(__CUDA_ARCH__)
  float4 const q = __ldcs(reinterpret_cast<float4 const*>(at));
  return {{q.x, q.y, q.z, q.w}};
#else
  return *at;
#endif
}
PALIMPSA_HD PALIMPSA_INLINE float read_state(float const* at) {
#if defined(__CUDA_ARCH__)
  return __ldcs(at);
#else
  return *at;
#endif
}
PALIMPSA_HD PALIMPSA_INLINE void write_state(quad* at, quad q) {
#if defined(__CUDA_ARCH__)
  __stcs(reinterpret_cast<float4*>(at), make_float4(q.x[0], q.x[1], q.x[2], q.x[3]));
#else
  *at = q;
#endif
}
PALIMPSA_HD PALIMPSA_INLINE void write_state(float* at, float x) {
#if defined(__CUDA_ARCH__)
  __stcs(at, x);
#else
  *at = x;
#endif
}

/// Whether 16-byte accesses to rows of a state are allowed: unit stride along the keys, everything else a multiple of four.
template <class T>
PALIMPSA_HD bool moves_in_quads(plane<T> const& state, std::int64_t keys) {
  return state.column == 1 && state.row % 4 == 0 && keys % 4 == 0 && reinterpret_cast<std::uintptr_t>(state.data) % 16 == 0;
}

/// One lane's cells of a group's rows, 16 bytes at a time; `at` is the lane's first cell of the group's first row. Loads are
/// predicated, never branched around, so that all of them are in flight before the first is needed: a branch an access ran the
/// one-token step at half the bandwidth.
template <class Tile, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void load_quads(float const* at, std::int64_t row_step, int rows, int keys, int group, int lane,
                                            Rows* into) {
  PALIMPSA_UNROLLED
  for (int r = 0; r < Tile::rows; ++r) {
    bool const exists = Tile::row_of(group, r) < rows;
    float const* const cells = at + r * Tile::groups * row_step;
    PALIMPSA_UNROLLED
    for (int i = 0; i < Tile::keys_per_lane; i += 4) {
      quad q{};
      if (exists && Tile::key_of(lane, i) < keys) q = read_state(reinterpret_cast<quad const*>(cells + Tile::key_of(0, i)));
      for (int c = 0; c < 4; ++c) into[i + c].row[r] = q.x[c];
    }
  }
}

/// The way back of load_quads.
template <class Tile, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void store_quads(Rows const* from, float* at, std::int64_t row_step, int rows, int keys, int group,
                                             int lane) {
  PALIMPSA_UNROLLED
  for (int r = 0; r < Tile::rows; ++r) {
    bool const exists = Tile::row_of(group, r) < rows;
    float* const cells = at + r * Tile::groups * row_step;
    PALIMPSA_UNROLLED
    for (int i = 0; i < Tile::keys_per_lane; i += 4) {
      quad q;
      for (int c = 0; c < 4; ++c) q.x[c] = from[i + c].row[r];
      if (exists && Tile::key_of(lane, i) < keys) write_state(reinterpret_cast<quad*>(cells + Tile::key_of(0, i)), q);
    }
  }
}

/// A lane's first cell of a group's first row.
template <class Tile, class T>
PALIMPSA_HD PALIMPSA_INLINE T* first_cell(plane<T> const& state, std::int64_t first_row, int group, int lane) {
  return &state(first_row + Tile::row_of(group, 0), Tile::key_of(lane, 0));
}

/// Hides where a pointer came from, so that addresses are walked one after another: worked out all at once, those of a strided state
/// would take more registers than the state itself.
template <class T>
PALIMPSA_HD PALIMPSA_INLINE void walk(T*& pointer) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+l"(pointer));
#else
  static_cast<void>(pointer);
#endif
}

/// Calls f(cell, pointer) for the cells of one row that exist, in order.
template <class Tile, class T, class F>
PALIMPSA_HD PALIMPSA_INLINE void walk_row(plane<T> const& state, std::int64_t row, int keys, int lane, F f) {
  T* at = &state(row, Tile::key_of(lane, 0));
  PALIMPSA_UNROLLED
  for (int i = 0; i < Tile::keys_per_lane; ++i) {
    if (Tile::key_of(lane, i) < keys) f(i, at);
    at += i % 4 < 3 ? state.column : (4 * Tile::lanes - 3) * state.column;
    walk(at);
  }
}

/// The same from any strides, cell by cell.
template <class Tile, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void load_each(plane<float const> const& state, std::int64_t first_row, int rows, int keys, int group,
                                           int lane, Rows* into) {
  PALIMPSA_UNROLLED
  for (int r = 0; r < Tile::rows; ++r) {
    PALIMPSA_UNROLLED
    for (int i = 0; i < Tile::keys_per_lane; ++i) into[i].row[r] = 0;
    if (state.present() && Tile::row_of(group, r) < rows)
      walk_row<Tile>(state, first_row + Tile::row_of(group, r), keys, lane,
                     [&](int i, float const* at) PALIMPSA_INLINE_LAMBDA { into[i].row[r] = read_state(at); });
  }
}

/// The way back of load_each.
template <class Tile, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void store_each(Rows const* from, plane<float> const& state, std::int64_t first_row, int rows, int keys,
                                            int group, int lane) {
  PALIMPSA_UNROLLED
  for (int r = 0; r < Tile::rows; ++r) {
    if (Tile::row_of(group, r) < rows)
      walk_row<Tile>(state, first_row + Tile::row_of(group, r), keys, lane,
                     [&](int i, float* at) PALIMPSA_INLINE_LAMBDA { write_state(at, from[i].row[r]); });
  }
}

}  // namespace detail

/// The state of a group's rows, from where the sequence starts; zeros if that is nowhere.
template <class Rule, class Tile, class Storage, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void load_cells(row_problem<Storage> const& p, block_task const& b, std::int64_t from, int group,
                                            int lane, Rows* eta, Rows* evidence) {
  int const keys = static_cast<int>(p.shape.keys);
  plane<float const> const etas = from < 0 ? plane<float const>{} : state_of(p.eta_in, from, b.head);
  plane<float const> const evidences =
      from < 0 || !Rule::keeps_diagonal ? plane<float const>{} : state_of(p.evidence_in, from, b.head);
  bool const quads = etas.present() && detail::moves_in_quads(etas, keys) &&
                     (!Rule::keeps_diagonal || (evidences.present() && detail::moves_in_quads(evidences, keys)));
  if (quads) {
    detail::load_quads<Tile>(detail::first_cell<Tile>(etas, b.first_row, group, lane), etas.row, b.rows, keys, group, lane, eta);
    if constexpr (Rule::keeps_diagonal)
      detail::load_quads<Tile>(detail::first_cell<Tile>(evidences, b.first_row, group, lane), evidences.row, b.rows, keys, group, lane, evidence);
  } else {
    detail::load_each<Tile>(etas, b.first_row, b.rows, keys, group, lane, eta);
    if constexpr (Rule::keeps_diagonal) detail::load_each<Tile>(evidences, b.first_row, b.rows, keys, group, lane, evidence);
  }
}

/// The state of a group's rows, to state (or slot) `to`.
template <class Rule, class Tile, class Storage, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void store_cells(row_problem<Storage> const& p, block_task const& b, std::int64_t to, int group,
                                             int lane, Rows const* eta, Rows const* evidence) {
  auto const store = [&](view<float> const& states, Rows const* from) {
    int const keys = static_cast<int>(p.shape.keys);
    plane<float> const state = state_of(states, to, b.head);
    if (!state.present()) return;
    if (detail::moves_in_quads(state, keys))
      detail::store_quads<Tile>(from, detail::first_cell<Tile>(state, b.first_row, group, lane), state.row, b.rows, keys, group, lane);
    else
      detail::store_each<Tile>(from, state, b.first_row, b.rows, keys, group, lane);
  };
  store(p.eta_out, eta);
  if constexpr (Rule::keeps_diagonal) store(p.evidence_out, evidence);
}

}  // namespace palimpsa::cuda
