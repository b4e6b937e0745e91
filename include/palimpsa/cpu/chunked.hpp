#pragma once
/// @file
/// The chunked scan of one head: H the state [V,K] at the start of a chunk, a_t the decay from there to token t, D_ts the decay between
/// tokens s ≤ t, e_s the decay from token s to the end.
///
///     read     O = scale · ((Q ⊙ a) Hᵀ + (D ∘ Q Kᵀ) U)
///     state    H ← a_C ⊙ H + Uᵀ (K ⊙ e)
///
///     Mamba2      as it stands
///     MesaNet     Q becomes X, x_t = Λ_t⁻¹ q_t
///     DeltaNets   U becomes W, what is left to write after correction (the WY form):
///                 w_t = s_t (u_t - β_t c_t)  ⇒  (I + L) W = s ⊙ U - sβ ⊙ (K ⊙ a) Hᵀ,  L_ts = s_t β_t D_ts k_t·k_s for s < t
///     Palimpsa    the state and, likewise, J ← a_C ⊙ J + Bᵀ (K² ⊙ e) by products; the read divides cell by cell, so the tokens of a
///                 chunk are read by the recurrence itself, from the chunk's start

#include <cstdint>
#include <optional>

#include "palimpsa/cpu/chunk.hpp"
#include "palimpsa/cpu/head.hpp"
#include "palimpsa/cpu/products.hpp"
#include "palimpsa/cpu/sequential.hpp"
#include "palimpsa/cpu/solve.hpp"
#include "palimpsa/traits.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::cpu {

/// Runs heads in chunks of at most `chunk` tokens, one after another in one thread's scratch.
template <class Rule, class Storage, class Scalar>
class chunked_runner {
 public:
  /// How this rule's chunk is computed.
  static constexpr chunk_form form = chunked_form<Rule>;

  /// Takes the scratch of one thread; counts only if the arena does.
  chunked_runner(arena& memory, std::int64_t chunk, std::int64_t keys, std::int64_t values)
      : chunk_(chunk),
        tokens_(memory, chunk, keys, values),
        state_(memory.take<Scalar>(values * keys)),
        evidence_(memory.take<Scalar>(form == chunk_form::divided_read ? values * keys : 0)),
        decayed_(memory.take<Scalar>(chunk * keys)),
        scores_(memory.take<Scalar>(form == chunk_form::divided_read ? 0 : chunk * chunk)),
        read_(memory.take<Scalar>(form == chunk_form::divided_read ? 0 : chunk * values)),
        variance_(memory.take<Scalar>(chunk)) {
    if constexpr (form == chunk_form::solved_read) precision_.take(memory, keys);
    if constexpr (form == chunk_form::divided_read) reader_.emplace(memory, keys, values);
  }

  /// One head, from its initial to its final state.
  void run(head_inputs<Storage, Scalar> const& in, head_outputs<Storage, Scalar> const& out, final_state<Scalar> const& last) {
    auto const state = matrix(state_, in.values, in.keys);
    load(in.eta, state);
    if constexpr (form == chunk_form::divided_read) load(in.evidence, matrix(evidence_, in.values, in.keys));
    if constexpr (form == chunk_form::solved_read) precision_.load(in.evidence);
    for (std::int64_t first = 0; first < in.tokens; first += chunk_) {
      std::int64_t const count = in.tokens - first < chunk_ ? in.tokens - first : chunk_;
      tokens_.load(in, first, count);
      if constexpr (form == chunk_form::divided_read)
        read_by_recurrence(in, out, first, count);
      else
        read_by_products(in, out, first, count);
      advance(state, tokens_.written(), tokens_.key());
      if constexpr (form == chunk_form::divided_read) {
        auto key = tokens_.key();
        key.array() *= key.array();
        advance(matrix(evidence_, in.values, in.keys), tokens_.beta(), key);
      }
    }
    store(state, last.eta);
    if constexpr (form == chunk_form::divided_read) store(matrix(evidence_, in.values, in.keys), last.evidence);
    if constexpr (form == chunk_form::solved_read)
      if (last.evidence.present()) precision_.store(last.evidence);
  }

 private:
  static void load(plane<Scalar const> from, matrix_map<Scalar> state) {
    for (std::int64_t i = 0; i < state.rows(); ++i)
      for (std::int64_t j = 0; j < state.cols(); ++j) state(i, j) = from.present() ? from(i, j) : Scalar{};
  }

  static void store(matrix_map<Scalar> state, plane<Scalar> to) {
    if (!to.present()) return;
    for (std::int64_t i = 0; i < state.rows(); ++i)
      for (std::int64_t j = 0; j < state.cols(); ++j) to(i, j) = state(i, j);
  }

  /// state ← a_C ⊙ state + writtenᵀ (key ⊙ e).
  void advance(matrix_map<Scalar> state, matrix_map<Scalar> written, matrix_map<Scalar> key) {
    auto decayed = matrix(decayed_, key.rows(), key.cols());
    decayed = key;
    tokens_.decay_to_end(decayed);
    tokens_.decay_whole(state);
    add_product(state, written.transpose(), decayed);
  }

  /// The tokens of a chunk by the recurrence, from the chunk's start.
  void read_by_recurrence(head_inputs<Storage, Scalar> const& in, head_outputs<Storage, Scalar> const& out, std::int64_t first,
                          std::int64_t count) {
    head_inputs<Storage, Scalar> part = in;
    part.tokens = count;
    auto const from = [&](auto tensor) {
      if (tensor.present()) tensor.data += first * tensor.row;
      return tensor;
    };
    part.q = from(in.q), part.k = from(in.k), part.v = from(in.v);
    part.beta = from(in.beta), part.log_decay = from(in.log_decay);
    part.eta = {state_, in.keys, 1};
    part.evidence = {evidence_, in.keys, 1};
    reader_->run(part, {from(out.out), from(out.out_variance)}, final_state<Scalar>{count, {}, {}});
  }

  /// The tokens of a chunk by products.
  void read_by_products(head_inputs<Storage, Scalar> const& in, head_outputs<Storage, Scalar> const& out, std::int64_t first,
                        std::int64_t count) {
    auto const state = matrix(state_, in.values, in.keys);
    auto const scores = matrix(scores_, count, count);
    auto decayed = matrix(decayed_, count, in.keys);
    if constexpr (form == chunk_form::solved_read) solve_queries(in, count);
    if constexpr (form == chunk_form::wy) correct(in, count);
    auto read = matrix(read_, count, in.values);
    decayed = tokens_.query();
    tokens_.decay_from_start(decayed);
    read.setZero();
    add_product(read, decayed, state.transpose());
    tokens_.score(tokens_.query(), tokens_.key(), scores);
    add_product(read, scores, tokens_.written());
    for (std::int64_t t = 0; t < count; ++t) {
      answer(&read(t, 0), in.values, in.scale, &out.out(first + t, 0), out.out.column);
      if constexpr (form == chunk_form::solved_read)
        for (std::int64_t i = 0; out.out_variance.present() && i < in.values; ++i)
          out.out_variance(first + t, i) = variance_[t] * (in.scale * in.scale);
    }
  }

  /// scale · read to the caller's memory, rounded to storage.
  static void answer(Scalar const* read, std::int64_t values, Scalar scale, Storage* out, std::int64_t step) {
    using wide = decltype(storage<Storage>::load(*out));
    if (step == 1) {
      for (std::int64_t i = 0; i < values; ++i) out[i] = storage<Storage>::store(static_cast<wide>(read[i] * scale));
    } else {
      for (std::int64_t i = 0; i < values; ++i) out[i * step] = storage<Storage>::store(static_cast<wide>(read[i] * scale));
    }
  }

  /// Q ← X, x_t = (diag(prior) + J_t)⁻¹ q_t, J taken along token by token.
  void solve_queries(head_inputs<Storage, Scalar> const& in, std::int64_t count) {
    auto const key = tokens_.key();
    auto query = tokens_.query();
    for (std::int64_t t = 0; t < count; ++t) {
      precision_.observe(&key(t, 0), tokens_.alpha(t)[0], tokens_.beta()(t, 0));
      precision_.factorise(in.prior);
      precision_.solve(&query(t, 0));
      double variance = 0;
      for (std::int64_t j = 0; j < in.keys; ++j) {
        variance += precision_.solution[j] * static_cast<double>(query(t, j));
        query(t, j) = static_cast<Scalar>(precision_.solution[j]);
      }
      variance_[t] = static_cast<Scalar>(variance);
    }
  }

  /// U ← W, what is left to write after the correction.
  void correct(head_inputs<Storage, Scalar> const& in, std::int64_t count) {
    auto const state = matrix(state_, in.values, in.keys);
    auto lower = matrix(scores_, count, count);
    auto decayed = matrix(decayed_, count, in.keys);
    auto written = tokens_.written();
    auto const key = tokens_.key();
    tokens_.score(key, key, lower);
    decayed = key;
    tokens_.decay_from_start(decayed);
    serial_lanes const lanes{static_cast<int>(in.keys)};
    for (std::int64_t t = 0; t < count; ++t) {
      Scalar const beta = tokens_.beta()(t, 0);
      Scalar const all = beta * lanes.sum<Scalar>([&](int j) { return key(t, j) * key(t, j); });
      Scalar const gain = Rule::gain_type::at(lanes, Scalar{}, all);
      written.row(t) *= gain;
      decayed.row(t) *= -gain * beta;
      for (std::int64_t s = 0; s < t; ++s) lower(t, s) *= gain * beta;
    }
    add_product(written, decayed, state.transpose());
    solve_unit_lower(lower, written);
  }

  std::int64_t chunk_;
  chunk_tokens<Rule, Storage, Scalar> tokens_;
  Scalar *state_, *evidence_, *decayed_, *scores_, *read_, *variance_;
  precision_matrix<Scalar> precision_;
  std::optional<sequential_runner<Rule, Storage, Scalar>> reader_;
};

}  // namespace palimpsa::cpu
