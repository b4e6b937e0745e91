#pragma once
/// @file
/// A chunk of tokens of one head as matrices, and what it does to the state.
///
///     η ← a ⊙ η + Uᵀ(E ⊙ K)         J ← a ⊙ J + Bᵀ(E ⊙ K²)   (diagonal)    or    a J + Kᵀ diag(β) (E ⊙ K)   (full)
///
/// U what the tokens write, B their β, a the decay over the chunk, E_s that from token s (its own gate excluded) to the chunk's end
/// (chunked_gates.hpp). K, U and B are scaled by a power of two a token, q by another (ranges.hpp).

#include <algorithm>
#include <cstdint>

#include "palimpsa/cpu/chunked_gates.hpp"
#include "palimpsa/cpu/chunked_products.hpp"
#include "palimpsa/cpu/ranges.hpp"
#include "palimpsa/cpu/head.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/lanes.hpp"
#include "palimpsa/rule.hpp"
#include "palimpsa/storage.hpp"
#include "palimpsa/traits.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Elements between rows of `columns` elements: whole packs, and never a multiple of 512 bytes, which would crowd a column of packs into
/// an eighth of the first-level cache.
template <class Scalar>
constexpr std::int64_t row_stride(std::int64_t columns) {
  std::int64_t const padded = padded_columns<Scalar>(columns), line = 64 / static_cast<std::int64_t>(sizeof(Scalar));
  return padded % (8 * line) == 0 ? padded + line : padded;
}

/// A matrix of scratch memory whose rows start aligned.
template <class Scalar>
matrix<Scalar> take_matrix(arena& memory, std::int64_t rows, std::int64_t columns) {
  std::int64_t const stride = row_stride<Scalar>(columns);
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
  matrix<Scalar> key;      ///< k̂ [C,K]
  matrix<Scalar> query;    ///< q̂ [C,K], after load_queries()
  matrix<Scalar> written;  ///< û [C,V]; of a DeltaNet s û
  matrix<Scalar> beta;     ///< β̂ [C,V] where a diagonal is kept
  Scalar* strength;        ///< β̂ of each token's first channel [C]
  Scalar* rate;            ///< s β̂ of a DeltaNet [C], s the gain
  double* lift;            ///< q = lift · q̂ [C]
  matrix<double> alpha;    ///< [C,1 or K]
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
        rate(memory.take<Scalar>(corrects ? most : 0)),
        lift(memory.take<double>(most)),
        alpha{memory.take<double>(most * gates()), gates()},
        spare(take_matrix<Scalar>(memory, most, K)),
        step_(take_matrix<Scalar>(memory, K, Rule::keeps_full && K > V ? K : V)),
        power_(memory.take<double>(most)),
        run_(memory.take<double>(gates())),
        change_(memory.take<double>(gates())),
        share_(memory.take<Scalar>(gates())) {}

  /// Reads tokens [first, first + n) of a head, their queries excepted. One tensor after the other: short loops keep more misses in
  /// flight (all of a token at once took twice as long).
  void load(head_inputs<Storage, Scalar> const& in, std::int64_t first, std::int64_t n) {
    count = n;
    for (std::int64_t t = 0; t < n; ++t) {
      load_row(in.k, first, t, keys, key.row(t), key.stride);
      power_[t] = normalise(key.row(t), key.stride);
    }
    for (std::int64_t t = 0; t < n; ++t) load_written(in, first, t);
    std::fill_n(change_, gates(), 0.0);
    for (std::int64_t t = 0; t < n; ++t) load_gates(in, first + t, alpha.row(t));
  }

  /// Reads their queries.
  void load_queries(head_inputs<Storage, Scalar> const& in, std::int64_t first) {
    for (std::int64_t t = 0; t < count; ++t) {
      load_row(in.q, first, t, keys, query.row(t), query.stride);
      lift[t] = normalise(query.row(t), query.stride);
    }
  }

  /// spare_t ← factor(t) x_t ⊙ Π_{r≤t} α_r, the decay from the chunk's start.
  template <class F>
  void decay_from_start(matrix<Scalar> x, F factor) const {
    std::fill_n(run_, gates(), 1.0);
    for (std::int64_t t = 0; t < count; ++t) {
      auto const f = static_cast<double>(factor(t));
      for (std::int64_t j = 0; j < gates(); ++j) {
        run_[j] = decayed<Scalar>(run_[j], alpha(t, j));
        share_[j] = static_cast<Scalar>(run_[j] * f);
      }
      decay_row<per_key>(spare.row(t), x.row(t), share_, x.stride);
    }
  }

  /// Takes the chunk's tokens into the state. Overwrites `spare`.
  void advance(chunk_state<Scalar> state) const {
    decay_keys_to_end();
    take_in(state.eta, transposed<Scalar>{spare}, written, values);
    if constexpr (Rule::keeps_diagonal) {
      for (std::int64_t s = 0; s < count; ++s) decay_row<true>(spare.row(s), spare.row(s), key.row(s), key.stride);
      take_in(state.evidence, transposed<Scalar>{spare}, beta, values);
    }
    if constexpr (Rule::keeps_full) {
      for (std::int64_t s = 0; s < count; ++s) scale_row(spare.row(s), spare.row(s), strength[s], key.stride);
      take_in(state.evidence, transposed<Scalar>{key}, spare, keys);
    }
  }

 private:
  static constexpr std::int64_t ahead = 8;  // rows; 4 and 16 ran alike
  static constexpr bool corrects = chunked_form<Rule> == chunk_form::wy;

  std::int64_t gates() const { return per_key ? key.stride : 1; }

  template <class T>
  void load_row(plane<T const> from, std::int64_t first, std::int64_t t, std::int64_t columns, Scalar* row, std::int64_t stride) const {
    expect(from, first + t + ahead, first + count, columns);
    widen(&from(first + t, 0), from.column, columns, row, [](Scalar x, std::int64_t) { return x; });
    std::fill(row + columns, row + stride, Scalar{});
  }

  /// û and β̂, in double until they are rounded: β v alone, or 2²ᵉ, may leave the range that they are in.
  void load_written(head_inputs<Storage, Scalar> const& in, std::int64_t first, std::int64_t t) const {
    double const power = power_[t], b = in.beta.present() ? static_cast<double>(in.beta(first + t, 0)) : 1;
    strength[t] = static_cast<Scalar>(b * power * power);
    double stretch = power;
    if constexpr (corrects) {
      double const gain = gain_of(t, b * power * power);
      rate[t] = static_cast<Scalar>(gain * (b * power * power));
      stretch *= gain;
    }
    if (in.beta.column == 0) {
      load_values(in, first, t, [=](std::int64_t) { return b; }, stretch);
      if constexpr (Rule::keeps_diagonal) std::fill_n(beta.row(t), beta.stride, strength[t]);
    } else {
      plane<Scalar const> const channels = in.beta;
      load_values(in, first, t, [=](std::int64_t i) { return static_cast<double>(channels(first + t, i)); }, stretch);
      if constexpr (Rule::keeps_diagonal) {
        load_row(channels, first, t, values, beta.row(t), beta.stride);
        for (std::int64_t i = 0; i < values; ++i)
          beta(t, i) = static_cast<Scalar>(static_cast<double>(beta(t, i)) * power * power);
      }
    }
  }

  template <class Beta>
  void load_values(head_inputs<Storage, Scalar> const& in, std::int64_t first, std::int64_t t, Beta b, double stretch) const {
    Scalar* const row = written.row(t);
    expect(in.v, first + t + ahead, first + count, values);
    widen(&in.v(first + t, 0), in.v.column, values, row, [=](Scalar v, std::int64_t i) {
      return static_cast<Scalar>(Rule::weighting_type::write(b(i), static_cast<double>(v)) * stretch);
    });
    std::fill(row + values, row + written.stride, Scalar{});
  }

  /// s from β̂ k̂ᵀk̂.
  double gain_of(std::int64_t t, double b) const {
    native_pack<Scalar> square{};
    for (std::int64_t j = 0; j < key.stride; j += native_pack<Scalar>::size) {
      native_pack<Scalar> const k = pack_at(key.row(t) + j);
      square = fused(k, k, square);
    }
    return Rule::gain_type::at(serial_lanes{static_cast<int>(keys)}, 0.0, b * static_cast<double>(square.sum()));
  }

  void load_gates(head_inputs<Storage, Scalar> const& in, std::int64_t t, double* row) const {
    using forget = typename Rule::forget_type;
    std::int64_t const n = per_key ? keys : 1;
    for (std::int64_t j = 0; j < n; ++j) {
      Scalar const log_decay = in.log_decay.present() ? in.log_decay(t, j) : Scalar{};
      row[j] = wide_retain<forget>(log_decay);
      if constexpr (keeps_change) change_[j] += (1 + change_[j]) * wide_change<forget>(log_decay, row[j]);
    }
    std::fill(row + n, row + gates(), 1.0);
  }

  /// spare_s ← k_s ⊙ Π_{r>s} α_r; what is left in run_ is the decay over the whole chunk.
  void decay_keys_to_end() const {
    std::fill_n(run_, gates(), 1.0);
    for (std::int64_t s = count - 1; s >= 0; --s) {
      for (std::int64_t j = 0; j < gates(); ++j) share_[j] = static_cast<Scalar>(run_[j]);
      decay_row<per_key>(spare.row(s), key.row(s), share_, key.stride);
      for (std::int64_t j = 0; j < gates(); ++j) run_[j] = decayed<Scalar>(run_[j], alpha(s, j));
    }
  }

  /// state ← D ⊙ state + left · right. Row j of a state belongs to key j.
  void take_in(matrix<Scalar> state, transposed<Scalar> left, matrix<Scalar> right, std::int64_t columns) const {
    std::int64_t const padded = padded_columns<Scalar>(columns);
    auto const gate = [](std::int64_t j) { return per_key ? j : 0; };
    for (std::int64_t j = 0; j < keys; ++j) {
      double const decay = run_[gate(j)];
      open_step(step_.row(j), state.row(j), decay, keeps_change ? change_[gate(j)] : decay - 1, padded);
    }
    add_product({keys, count, columns}, left, right, step_);
    for (std::int64_t j = 0; j < keys; ++j) close_step(state.row(j), step_.row(j), run_[gate(j)], padded);
  }

  /// In float the difference of two doubles is D - 1 to more digits than are kept.
  static constexpr bool keeps_change = std::is_same_v<Scalar, double>;

  matrix<Scalar> step_;  // what a chunk does to a state
  double* power_;        // 2ᵉ of each key
  double* run_;          // products of gates
  double* change_;       // decay of the whole chunk, less 1
  Scalar* share_;        // run_, rounded
};

}  // namespace palimpsa::cpu
