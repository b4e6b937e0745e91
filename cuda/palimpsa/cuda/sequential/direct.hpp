#pragma once
/// @file
/// A token taken straight from the caller's memory into a thread's registers, for the one-token step. Host and device.

#include <cstdint>

#include "palimpsa/cuda/sequential/block.hpp"

namespace palimpsa::cuda {
namespace detail {

/// One lane's cells of a row of a [tokens, K] tensor, widened; padding is zero. Predicated, not branched: see load_quads.
template <class Tile, class T>
PALIMPSA_HD PALIMPSA_INLINE void gather(plane<T const> from, std::int64_t t, std::int64_t existing, int lane, float* into) {
  T const* const row = from.data + t * from.row;
  int const keys = static_cast<int>(existing);
  if (from.column == 1 && keys % 4 == 0 && reinterpret_cast<std::uintptr_t>(row) % (4 * sizeof(T)) == 0) {
    four<T> arriving[Tile::keys_per_lane / 4] = {};
    PALIMPSA_UNROLLED
    for (int i = 0; i < Tile::keys_per_lane / 4; ++i)
      if (Tile::key_of(lane, 4 * i) < keys)
        arriving[i] = *reinterpret_cast<four<T> const*>(row + Tile::key_of(lane, 0) + Tile::key_of(0, 4 * i));
    PALIMPSA_UNROLLED
    for (int i = 0; i < Tile::keys_per_lane; ++i) into[i] = storage<T>::load(arriving[i / 4].x[i % 4]);
  } else {
    PALIMPSA_UNROLLED
    for (int i = 0; i < Tile::keys_per_lane; ++i) into[i] = 0;
    walk_row<Tile>(from, t, keys, lane, [&](int i, T const* at) PALIMPSA_INLINE_LAMBDA { into[i] = storage<T>::load(*at); });
  }
}

}  // namespace detail

/// One lane's keys, queries and gates of token t. A gate above 0 is flagged.
template <class Rule, class Tile, class Storage>
PALIMPSA_HD PALIMPSA_INLINE void gather_token(row_problem<Storage> const& p, block_task const& b, segment const& s, std::int64_t t,
                                              int lane, float* key, float* query, float* alpha) {
  detail::gather<Tile>(on_device(tokens_of(p.k, s, b.key_head)), t, p.shape.keys, lane, key);
  if constexpr (Rule::keeps_full)
    detail::gather<Tile>(on_device(tokens_of(p.solved, s, b.head)), t, p.shape.keys, lane, query);
  else
    detail::gather<Tile>(on_device(tokens_of(p.q, s, b.key_head)), t, p.shape.keys, lane, query);
  plane<float const> const gates = on_device(gates_of<typename Rule::forget_type>(p.log_decay, s, b.head));
  constexpr int cells = Rule::forget_type::scope == gate_scope::key ? Tile::keys_per_lane : 1;
  for (int i = 0; i < cells; ++i) alpha[i] = 0;
  if (gates.present()) {
    if constexpr (cells > 1)
      detail::gather<Tile>(gates, t, p.shape.keys, lane, alpha);
    else
      alpha[0] = gates(t, 0);
  }
  for (int i = 0; i < cells; ++i) {
    if (alpha[i] > 0) flag(p.status, positive_gate);
    alpha[i] = Rule::forget_type::retain(alpha[i]);
  }
}

/// A group's values and β of token t. A β below 0 is flagged.
template <class Tile, class Storage, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void gather_rows(row_problem<Storage> const& p, block_task const& b, segment const& s, std::int64_t t,
                                             int group, Rows& v, Rows& beta) {
  plane<Storage const> const values = on_device(tokens_of(p.v, s, b.head));
  plane<float const> const betas = on_device(tokens_of(p.beta, s, b.head));
  PALIMPSA_UNROLLED
  for (int r = 0; r < Tile::rows; ++r) {
    int const row = Tile::row_of(group, r);
    bool const exists = row < b.rows;
    v.row[r] = exists ? storage<Storage>::load(values(t, b.first_row + row)) : 0.0f;
    beta.row[r] = !exists ? 0.0f : betas.present() ? betas(t, b.first_row + row) : 1.0f;
    if (beta.row[r] < 0) flag(p.status, negative_beta);
  }
}

/// A group's reads of token t to the caller's memory.
template <bool Variance, class Tile, class Storage, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void answer_rows(row_problem<Storage> const& p, block_task const& b, segment const& s, std::int64_t t,
                                             int group, answer<Rows, Variance> const& read) {
  plane<Storage> const out = on_device(tokens_of(p.out, s, b.head));
  plane<float> const variance = on_device(tokens_of(p.out_variance, s, b.head));
  PALIMPSA_UNROLLED
  for (int r = 0; r < Tile::rows; ++r) {
    int const row = Tile::row_of(group, r);
    if (row >= b.rows) continue;
    out(t, b.first_row + row) = storage<Storage>::store(read.mean.row[r] * p.scale);
    if constexpr (Variance)
      if (variance.present()) variance(t, b.first_row + row) = read.variance.row[r] * p.scale * p.scale;
  }
}

}  // namespace palimpsa::cuda
