#pragma once
/// @file
/// The chunked scan of one head: H the state [V,K] at a chunk's start, A_t the decay from there to token t, S_ts = D_ts q_t·k_s the
/// scores (chunked_scores.hpp), U what the tokens write.
///
///     read      O = scale · ((A ⊙ Q) Hᵀ + S U)             state    H ← the chunk's tokens taken in (chunked_tokens.hpp)
///
///     Mamba2      as it stands
///     MesaNet     Q becomes X, x_t = Λ_t⁻¹ q_t (chunked_solve.hpp)
///     DeltaNets   U becomes W, what is left to write after the correction (the WY form):
///                 w_t = s_t (u_t - β_t c_t)   ⇒   (1 + L) W = s ⊙ U - sβ ⊙ (A ⊙ K) Hᵀ,   L_ts = s_t β_t D_ts k_t·k_s for s < t,
///                 by forward substitution: an inverse by repeated squaring is off by 1e9 where keys repeat
///     Palimpsa    the read divides cell by cell, so no product serves it: the recurrence itself reads the chunk from its start, in
///                 its own frame (a frame that divides by A fails under strong gates)
///
/// But for the DeltaNets a chunk's start needs no read of the chunks before: walk() runs over the states alone, after which read()
/// takes chunks in any order.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "palimpsa/cpu/chunked_scores.hpp"
#include "palimpsa/cpu/chunked_solve.hpp"
#include "palimpsa/cpu/chunked_tokens.hpp"
#include "palimpsa/cpu/flush.hpp"
#include "palimpsa/cpu/sequential.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/traits.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Runs heads in chunks of at most `chunk` tokens in one thread's scratch.
template <class Rule, class Storage, class Scalar>
class chunked_runner {
 public:
  using inputs = head_inputs<Storage, Scalar>;    ///< what a head reads
  using outputs = head_outputs<Storage, Scalar>;  ///< where it writes

  /// Whether the state at a chunk's start does not depend on what was read before.
  static constexpr bool independent_reads = chunked_form<Rule> != chunk_form::wy;

  /// Takes the scratch of one thread; counts only if the arena does.
  chunked_runner(arena& memory, std::int64_t chunk, std::int64_t keys, std::int64_t values)
      : chunk_(chunk), tokens_(memory, chunk, keys, values), state_(take_state(memory, keys, values)) {
    if constexpr (by_products) {
      scores_.emplace(memory, chunk, keys);
      table_ = take_matrix<Scalar>(memory, block_rows, chunk);
      read_ = take_matrix<Scalar>(memory, chunk, values);
      variance_ = memory.take<double>(form == chunk_form::solved_read ? chunk : 0);
    }
    if constexpr (form == chunk_form::solved_read) solver_.emplace(memory, keys);
    if constexpr (form == chunk_form::divided_read) recurrence_.emplace(memory, keys, values);
  }

  /// The arrays of a state.
  static chunk_state<Scalar> take_state(arena& memory, std::int64_t keys, std::int64_t values) {
    chunk_state<Scalar> state;
    state.eta = take_matrix<Scalar>(memory, keys, values);
    if constexpr (Rule::keeps_diagonal) state.evidence = take_matrix<Scalar>(memory, keys, values);
    if constexpr (Rule::keeps_full) state.evidence = take_matrix<Scalar>(memory, keys, keys);
    return state;
  }

  /// One head, from its initial to its final state.
  void run(inputs const& in, outputs const& out, final_state<Scalar> const& last) {
    flush_small const mode(small_is_zero<Rule>(in));
    walk(in, last, [&](std::int64_t first, chunk_state<Scalar> state) { read_loaded(in, out, first, state); });
  }

  /// The states of a head at the start of each chunk, visit(first token, state), and the final one. Reads nothing.
  template <class Visit>
  void walk(inputs const& in, final_state<Scalar> const& last, Visit visit) {
    load_state(in);
    for (std::int64_t first = 0; first < in.tokens; first += chunk_) {
      tokens_.load(in, first, (std::min)(chunk_, in.tokens - first));
      visit(first, state_);
      tokens_.advance(state_);
    }
    store_state(in, last);
  }

  /// The reads of the chunk at `first`, whose state is `state`.
  void read(inputs const& in, outputs const& out, std::int64_t first, chunk_state<Scalar> state)
    requires independent_reads
  {
    if constexpr (by_products)
      tokens_.load(in, first, (std::min)(chunk_, in.tokens - first));
    else
      tokens_.count = (std::min)(chunk_, in.tokens - first);
    read_loaded(in, out, first, state);
  }

 private:
  static constexpr chunk_form form = chunked_form<Rule>;
  static constexpr bool by_products = form != chunk_form::divided_read;
  using tokens = chunk_tokens<Rule, Storage, Scalar>;

  void load_state(inputs const& in) const {
    for (std::int64_t j = 0; j < in.keys; ++j) {
      std::fill_n(state_.eta.row(j), state_.eta.stride, Scalar{});
      for (std::int64_t i = 0; in.eta.present() && i < in.values; ++i) state_.eta(j, i) = in.eta(i, j);
      if constexpr (Rule::keeps_precision) {
        std::fill_n(state_.evidence.row(j), state_.evidence.stride, Scalar{});
        for (std::int64_t i = 0; in.evidence.present() && i < evidence_rows(in); ++i) state_.evidence(j, i) = in.evidence(i, j);
      }
    }
  }

  /// A full J is symmetric to the last bit: what lies above the diagonal is a copy.
  void store_state(inputs const& in, final_state<Scalar> const& last) const {
    for (std::int64_t j = 0; j < in.keys; ++j) {
      for (std::int64_t i = 0; last.eta.present() && i < in.values; ++i) last.eta(i, j) = state_.eta(j, i);
      if constexpr (Rule::keeps_precision)
        for (std::int64_t i = 0; last.evidence.present() && i < evidence_rows(in); ++i)
          last.evidence(i, j) = Rule::keeps_full && i > j ? state_.evidence(i, j) : state_.evidence(j, i);
    }
  }

  static std::int64_t evidence_rows(inputs const& in) { return Rule::keeps_full ? in.keys : in.values; }

  void read_loaded(inputs const& in, outputs const& out, std::int64_t first, chunk_state<Scalar> state) {
    if constexpr (by_products) {
      tokens_.load_queries(in, first);
      if constexpr (form == chunk_form::solved_read) solver_->solve(tokens_, state, in.prior, variance_);
      read_by_products(in, out, first, state);
    } else {
      read_by_recurrence(in, out, first, state);
    }
  }

  /// The tokens of a chunk by the recurrence, from the chunk's start.
  void read_by_recurrence(inputs const& in, outputs const& out, std::int64_t first, chunk_state<Scalar> state) {
    inputs part = in;
    part.tokens = tokens_.count;
    auto const from = [first](auto tensor) {
      if (tensor.present()) tensor.data += first * tensor.row;
      return tensor;
    };
    part.q = from(in.q), part.k = from(in.k), part.v = from(in.v);
    part.beta = from(in.beta), part.log_decay = from(in.log_decay);
    part.eta = {state.eta.data, 1, state.eta.stride};
    part.evidence = {state.evidence.data, 1, state.evidence.stride};
    recurrence_->run(part, {from(out.out), from(out.out_variance)}, final_state<Scalar>{part.tokens, {}, {}});
  }

  /// The tokens of a chunk by products, a block of rows after the other.
  void read_by_products(inputs const& in, outputs const& out, std::int64_t first, chunk_state<Scalar> state) {
    std::int64_t const count = tokens_.count;
    tokens_.decay_from_start(tokens_.query, [](std::int64_t) { return 1; });
    for (std::int64_t t = 0; t < count; ++t) std::fill_n(read_.row(t), read_.stride, Scalar{});
    add_product({count, in.keys, in.values}, tokens_.spare, state.eta, read_);
    if constexpr (form == chunk_form::wy) predict(in, state);
    scores_->begin(tokens_);
    for (std::int64_t r = 0; r < count; r += block_rows) {
      std::int64_t const rows = (std::min)(block_rows, count - r);
      scores_->open(tokens_, r, rows);
      if constexpr (form == chunk_form::wy) correct(in, r, rows);
      scores_->score(tokens_, tokens_.query, table_);
      add_lower(rows, r, in.values, table_, tokens_.written, read_.from(r));
      if (r + rows < count) scores_->close(tokens_);
    }
    answer(in, out, first);
  }

  /// s ⊙ U ← s ⊙ U - sβ ⊙ (A ⊙ K) Hᵀ, the right side of the system.
  void predict(inputs const& in, chunk_state<Scalar> state) {
    tokens_.decay_from_start(tokens_.key, [this](std::int64_t t) { return -tokens_.rate[t]; });
    add_product({tokens_.count, in.keys, in.values}, tokens_.spare, state.eta, tokens_.written);
  }

  /// U ← W in the open rows; those before are W already.
  void correct(inputs const& in, std::int64_t r, std::int64_t rows) {
    scores_->score(tokens_, tokens_.key, table_);
    for (std::int64_t t = 0; t < rows; ++t)
      for (std::int64_t s = 0; s < r + t; ++s) table_(t, s) *= -tokens_.rate[r + t];
    substitute(rows, r, in.values, table_, tokens_.written);
  }

  /// scale · reads and scale² · variances to the caller's memory. The powers of two that queries were scaled by come back here: in
  /// double, since neither they nor scale² need be in the range that the result is in.
  void answer(inputs const& in, outputs const& out, std::int64_t first) const {
    double const scale = static_cast<double>(in.scale);
    for (std::int64_t t = 0; t < tokens_.count; ++t) {
      narrow(read_.row(t), tokens_.lift[t] * scale, in.values, &out.out(first + t, 0), out.out.column);
      if constexpr (form == chunk_form::solved_read)
        for (std::int64_t i = 0; out.out_variance.present() && i < in.values; ++i)
          out.out_variance(first + t, i) = static_cast<Scalar>(variance_[t] * scale * scale);
    }
  }

  /// `count` elements, scaled and rounded to storage, `step` apart.
  static void narrow(Scalar const* from, double scale, std::int64_t count, Storage* into, std::int64_t step) {
    using wide = decltype(storage<Storage>::load(*into));
    auto const scaled = [=](Scalar x) { return storage<Storage>::store(static_cast<wide>(static_cast<double>(x) * scale)); };
    if (step == 1) {
      for (std::int64_t i = 0; i < count; ++i) into[i] = scaled(from[i]);
    } else {
      for (std::int64_t i = 0; i < count; ++i) into[i * step] = scaled(from[i]);
    }
  }

  std::int64_t chunk_;
  tokens tokens_;
  chunk_state<Scalar> state_;
  std::optional<chunk_scores<Rule, Storage, Scalar>> scores_;
  matrix<Scalar> table_, read_;  // scores of a block; reads of the chunk
  double* variance_ = nullptr;    // of q, scale aside
  std::optional<chunk_solver<Rule, Storage, Scalar>> solver_;
  std::optional<sequential_runner<Rule, Storage, Scalar>> recurrence_;
};

}  // namespace palimpsa::cpu
