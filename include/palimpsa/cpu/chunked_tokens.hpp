#pragma once
/// @file
/// A chunk of tokens of one head as matrices, and what it does to the state.
///
///     η ← a ⊙ η + Uᵀ(E ⊙ K)         J ← a ⊙ J + Bᵀ(E ⊙ K²)   (diagonal)    or    a J + Kᵀ diag(β) (E ⊙ K)   (full)
///
/// U what the tokens write, B their β, a the decay over the chunk, E_s that from token s (its own gate excluded) to the chunk's end.
///
/// Every decay is a running product of retained shares α ≤ 1: nothing is exponentiated twice, nothing is divided by a decay, and
/// what comes after a gate of -1000 or -inf starts again from 1. (Differences of running sums of log_decay would be inf - inf there.)

#include <algorithm>
#include <cstdint>

#include "palimpsa/cpu/chunked_products.hpp"
#include "palimpsa/cpu/head.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/rule.hpp"
#include "palimpsa/storage.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// A matrix of scratch memory whose rows start aligned.
template <class Scalar>
matrix<Scalar> take_matrix(arena& memory, std::int64_t rows, std::int64_t columns) {
  std::int64_t const stride = padded_columns<Scalar>(columns);
  return {memory.take<Scalar>(rows * stride), stride};
}

/// into_i ← f(from_i, i) for `count` elements, `step` apart, widened. Neighbours are a loop of their own, which compilers turn into
/// vectors.
template <class Scalar, class Storage, class F>
void widen(Storage const* from, std::int64_t step, std::int64_t count, Scalar* into, F f) {
  if (step == 1) {
    for (std::int64_t i = 0; i < count; ++i) into[i] = f(static_cast<Scalar>(storage<Storage>::load(from[i])), i);
  } else {
    for (std::int64_t i = 0; i < count; ++i) into[i] = f(static_cast<Scalar>(storage<Storage>::load(from[i * step])), i);
  }
}

/// Asks for row t of [tokens,channels] if there is one: the rows of a head lie apart, where no hardware looks ahead.
template <class T>
void expect([[maybe_unused]] plane<T> from, [[maybe_unused]] std::int64_t t, [[maybe_unused]] std::int64_t end,
            [[maybe_unused]] std::int64_t columns) {
#if defined(__GNUC__)
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  if (t < end && from.column == 1)
    for (std::int64_t i = 0; i < columns; i += line) __builtin_prefetch(&from(t, i));
#endif
}

/// y ← factor · x, over whole packs.
template <class Scalar>
void scale_row(Scalar* y, Scalar const* x, Scalar factor, std::int64_t columns) {
  constexpr std::int64_t width = native_pack<Scalar>::size;
  for (std::int64_t j = 0; j < columns; j += width) put_pack(pack_at(x + j) * factor, y + j);
}

/// y ← x ⊙ decay, over whole packs; the decay is one number, or one a key.
template <bool PerKey, class Scalar>
void decay_row(Scalar* y, Scalar const* x, Scalar const* decay, std::int64_t columns) {
  constexpr std::int64_t width = native_pack<Scalar>::size;
  if constexpr (PerKey)
    for (std::int64_t j = 0; j < columns; j += width) put_pack(pack_at(x + j) * pack_at(decay + j), y + j);
  else
    scale_row(y, x, decay[0], columns);
}

/// The state of a head between two chunks. η is kept K×V: the products and the packs of value rows want it so.
template <class Scalar>
struct chunk_state {
  matrix<Scalar> eta;       ///< ηᵀ [K,V]
  matrix<Scalar> evidence;  ///< Jᵀ [K,V], or J [K,K] of a full memory, or nothing
};

/// The tokens of a chunk. Rows are padded to whole packs (zeros; ones for gates).
template <class Rule, class Storage, class Scalar>
class chunk_tokens {
 public:
  /// Whether every key has a gate of its own.
  static constexpr bool per_key = Rule::forget_type::scope == gate_scope::key;

  std::int64_t keys;       ///< K
  std::int64_t values;     ///< V
  std::int64_t count = 0;  ///< tokens in the chunk
  matrix<Scalar> key;      ///< [C,K]
  matrix<Scalar> query;    ///< [C,K], after load_queries()
  matrix<Scalar> written;  ///< U [C,V]
  matrix<Scalar> beta;     ///< B [C,V] where a diagonal is kept
  Scalar* strength;        ///< β of each token's first channel [C]
  matrix<Scalar> alpha;    ///< [C,1 or K]
  matrix<Scalar> spare;    ///< [C,K], for whoever works on the chunk

  /// Takes the arrays of a chunk of at most `most` tokens; counts only if the arena does.
  chunk_tokens(arena& memory, std::int64_t most, std::int64_t K, std::int64_t V)
      : keys(K),
        values(V),
        key(take_matrix<Scalar>(memory, most, K)),
        query(take_matrix<Scalar>(memory, most, K)),
        written(take_matrix<Scalar>(memory, most, V)),
        beta(take_matrix<Scalar>(memory, Rule::keeps_diagonal ? most : 1, V)),
        strength(memory.take<Scalar>(most)),
        alpha(take_matrix<Scalar>(memory, most, per_key ? K : 1)),
        spare(take_matrix<Scalar>(memory, most, K)),
        run_(memory.take<Scalar>(alpha.stride)) {
    if constexpr (!per_key) alpha.stride = 1;
  }

  /// Reads tokens [first, first + n) of a head, their queries excepted. One tensor after the other: short loops keep more misses in
  /// flight (all of a token at once took twice as long).
  void load(head_inputs<Storage, Scalar> const& in, std::int64_t first, std::int64_t n) {
    count = n;
    for (std::int64_t t = 0; t < n; ++t) load_row(in.k, first, t, keys, key.row(t), key.stride);
    for (std::int64_t t = 0; t < n; ++t) strength[t] = in.beta.present() ? in.beta(first + t, 0) : Scalar(1);
    bool const per_channel = in.beta.column != 0;
    for (std::int64_t t = 0; t < n; ++t) {
      Scalar* const b = beta.row(Rule::keeps_diagonal ? t : 0);
      if (per_channel) {
        load_row(in.beta, first, t, values, b, beta.stride);
        load_written(in, first, t, [b](std::int64_t i) { return b[i]; });
      } else {
        load_written(in, first, t, [b = strength[t]](std::int64_t) { return b; });
        if constexpr (Rule::keeps_diagonal) std::fill_n(b, beta.stride, strength[t]);
      }
    }
    for (std::int64_t t = 0; t < n; ++t) load_gates(in, first + t, alpha.row(t));
  }

  /// Reads their queries.
  void load_queries(head_inputs<Storage, Scalar> const& in, std::int64_t first) {
    for (std::int64_t t = 0; t < count; ++t) load_row(in.q, first, t, keys, query.row(t), query.stride);
  }

  /// spare_t ← x_t ⊙ Π_{r≤t} α_r, the decay from the chunk's start.
  void decay_from_start(matrix<Scalar> x) const {
    std::fill_n(run_, alpha.stride, Scalar(1));
    for (std::int64_t t = 0; t < count; ++t) {
      for (std::int64_t j = 0; j < alpha.stride; ++j) run_[j] *= alpha(t, j);
      decay_row<per_key>(spare.row(t), x.row(t), run_, x.stride);
    }
  }

  /// Takes the chunk's tokens into the state. Overwrites `spare`.
  void advance(chunk_state<Scalar> state) const {
    decay_keys_to_end();
    decay_state(state.eta, padded_columns<Scalar>(values));
    add_product({keys, count, values}, transposed<Scalar>{spare}, written, state.eta);
    if constexpr (Rule::keeps_diagonal) {
      for (std::int64_t s = 0; s < count; ++s) decay_row<true>(spare.row(s), spare.row(s), key.row(s), key.stride);
      decay_state(state.evidence, padded_columns<Scalar>(values));
      add_product({keys, count, values}, transposed<Scalar>{spare}, beta, state.evidence);
    }
    if constexpr (Rule::keeps_full) {
      for (std::int64_t s = 0; s < count; ++s) scale_row(spare.row(s), spare.row(s), strength[s], key.stride);
      decay_state(state.evidence, padded_columns<Scalar>(keys));
      add_product({keys, count, keys}, transposed<Scalar>{key}, spare, state.evidence);
    }
  }

 private:
  static constexpr std::int64_t ahead = 8;  // rows; 4 and 16 ran alike

  template <class T>
  void load_row(plane<T const> from, std::int64_t first, std::int64_t t, std::int64_t columns, Scalar* row, std::int64_t stride) const {
    expect(from, first + t + ahead, first + count, columns);
    widen(&from(first + t, 0), from.column, columns, row, [](Scalar x, std::int64_t) { return x; });
    std::fill(row + columns, row + stride, Scalar{});
  }

  template <class Beta>
  void load_written(head_inputs<Storage, Scalar> const& in, std::int64_t first, std::int64_t t, Beta b) const {
    Scalar* const row = written.row(t);
    expect(in.v, first + t + ahead, first + count, values);
    widen(&in.v(first + t, 0), in.v.column, values, row,
          [b](Scalar v, std::int64_t i) { return Rule::weighting_type::write(b(i), v); });
    std::fill(row + values, row + written.stride, Scalar{});
  }

  void load_gates(head_inputs<Storage, Scalar> const& in, std::int64_t t, Scalar* row) const {
    for (std::int64_t j = 0; j < (per_key ? keys : 1); ++j)
      row[j] = Rule::forget_type::retain(in.log_decay.present() ? in.log_decay(t, j) : Scalar{});
    if constexpr (per_key) std::fill(row + keys, row + alpha.stride, Scalar(1));
  }

  /// spare_s ← k_s ⊙ Π_{r>s} α_r; what is left in run_ is the decay over the whole chunk.
  void decay_keys_to_end() const {
    std::fill_n(run_, alpha.stride, Scalar(1));
    for (std::int64_t s = count - 1; s >= 0; --s) {
      decay_row<per_key>(spare.row(s), key.row(s), run_, key.stride);
      for (std::int64_t j = 0; j < alpha.stride; ++j) run_[j] *= alpha(s, j);
    }
  }

  /// Row j of a state belongs to key j.
  void decay_state(matrix<Scalar> state, std::int64_t columns) const {
    for (std::int64_t j = 0; j < keys; ++j) scale_row(state.row(j), state.row(j), run_[per_key ? j : 0], columns);
  }

  Scalar* run_;
};

}  // namespace palimpsa::cpu
