#pragma once
/// @file
/// The backward pass on the CPU. States are kept where chunks start; inside a chunk, those of one pack of rows at a time are computed
/// again, and adjoint.hpp walks back over them.
///
///     for each chunk, forward              keep η, J at its start
///     for each chunk, backward
///       for each value head of the key head, for each pack of its rows
///         for each token, forward          history ← η, J before the token
///         for each token, backward         observe_adjoint; dq, dk summed over rows and heads
///
/// One task is a key head of a sequence with all its value heads, so that dq and dk are summed in an order that no thread can change.

#include <algorithm>
#include <cstdint>

#include "palimpsa/adjoint.hpp"
#include "palimpsa/cpu/backward_chunk.hpp"
#include "palimpsa/cpu/backward_fold.hpp"
#include "palimpsa/cpu/backward_head.hpp"
#include "palimpsa/cpu/backward_solve.hpp"
#include "palimpsa/cpu/flush.hpp"
#include "palimpsa/cpu/head.hpp"
#include "palimpsa/cpu/rows.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/fused.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Takes back key heads one after another in one thread's scratch. Scalar is the type of the tensors.
template <class Rule, class Storage, class Scalar>
class backward_runner {
 public:
  using Work = backward_scalar<Rule, Scalar>;   ///< the type of the arithmetic
  using rows = native_pack<Work>;               ///< a pack of value rows
  using head = head_backward<Storage, Scalar>;  ///< one value head

  /// Takes the scratch of one thread; counts only if the arena does.
  backward_runner(arena& memory, backward_sizes const& s)
      : sizes_(s),
        blocks_((s.values + rows::size - 1) / rows::size),
        state_(blocks_ * s.keys),
        start_eta_(memory.take<rows>(s.group * s.chunks * state_)),
        start_evidence_(memory.take<rows>(Rule::keeps_diagonal ? s.group * s.chunks * state_ : 0)),
        start_matrix_(memory.take<Work>(Rule::keeps_full ? s.group * s.chunks * s.keys * s.keys : 0)),
        d_eta_(memory.take<rows>(s.group * state_)),
        d_evidence_(memory.take<rows>(Rule::keeps_diagonal ? s.group * state_ : 0)),
        d_matrix_(memory.take<double>(Rule::keeps_full ? s.group * s.keys * s.keys : 0)),
        state_eta_(memory.take<rows>(s.keys)),
        state_evidence_(memory.take<rows>(Rule::keeps_diagonal ? s.keys : 0)),
        history_eta_(memory.take<rows>((s.chunk + 1) * s.keys)),
        history_evidence_(memory.take<rows>(Rule::keeps_diagonal ? (s.chunk + 1) * s.keys : 0)),
        solved_(memory.take<Work>(Rule::keeps_full ? s.chunk * s.keys : 0)),
        d_query_(memory.take<Work>(s.chunk * s.keys)),
        d_key_(memory.take<Work>(s.chunk * s.keys)),
        d_solved_(memory.take<Work>(Rule::keeps_full ? s.chunk * s.keys : 0)),
        d_alpha_(memory.take<Work>(per_key ? s.chunk * s.keys : 0)),
        query_pairs_(memory.take<rows>((s.keys + 1) / 2)),
        key_pairs_(memory.take<rows>((s.keys + 1) / 2)),
        alpha_pairs_(memory.take<rows>(per_key ? (s.keys + 1) / 2 : 0)),
        alpha_rows_(memory.take<rows>(s.chunk)),
        beta_rows_(memory.take<rows>(s.chunk)),
        prior_rows_(memory.take<rows>(Rule::keeps_diagonal ? s.chunk : 0)) {
    x_.take(memory, s.keys, s.chunk);
    if constexpr (Rule::keeps_full) precision_.take(memory, s.keys, s.chunk);
  }

  /// All value heads of one key head of one sequence. head_at(g) describes value head g of the group; d_q and d_k [T,K] may be absent.
  template <class HeadAt>
  void run(HeadAt head_at, plane<Storage> d_q, plane<Storage> d_k) {
    head const h = head_at(0);  // keys and queries are the same for the whole group
    bool small = true;
    for (std::int64_t g = 0; g < sizes_.group; ++g) small = small && small_is_zero<Rule>(head_at(g).in);
    flush_small const mode(small);
    std::int64_t const K = sizes_.keys, chunks = (h.in.tokens + sizes_.chunk - 1) / sizes_.chunk;
    for (std::int64_t g = 0; g < sizes_.group; ++g) begin(head_at(g), g);
    for (std::int64_t c = 0; c + 1 < chunks; ++c) {
      x_.load_keys(h.in.k, h.in.q, c * sizes_.chunk, sizes_.chunk);
      for (std::int64_t g = 0; g < sizes_.group; ++g) checkpoint(head_at(g), g, c);
    }
    for (std::int64_t c = chunks - 1; c >= 0; --c) {
      std::int64_t const first = c * sizes_.chunk, count = (std::min)(sizes_.chunk, h.in.tokens - first);
      x_.load_keys(h.in.k, h.in.q, first, count);
      std::fill_n(d_query_, count * K, Work{});
      std::fill_n(d_key_, count * K, Work{});
      for (std::int64_t g = 0; g < sizes_.group; ++g) take_back(head_at(g), g, c, count);
      if (d_q.present()) detail::narrow(d_query_, d_q, first, count, K);
      for (std::int64_t t = 0; t < count; ++t)
        if (x_.unit[t] != 1)
          for (std::int64_t j = 0; j < K; ++j) d_key_[t * K + j] *= x_.unit[t];
      if (d_k.present()) detail::narrow(d_key_, d_k, first, count, K);
    }
    for (std::int64_t g = 0; g < sizes_.group; ++g) leave_state(head_at(g), g);
  }

 private:
  using forget = typename Rule::forget_type;
  static constexpr bool per_key = forget::scope == gate_scope::key;

  /// η at the start of chunk c of value head g, all blocks; J lies likewise.
  rows* start_eta(std::int64_t g, std::int64_t c) const { return start_eta_ + (g * sizes_.chunks + c) * state_; }
  rows* start_evidence(std::int64_t g, std::int64_t c) const { return start_evidence_ + (g * sizes_.chunks + c) * state_; }
  Work* start_matrix(std::int64_t g, std::int64_t c) const {
    return start_matrix_ + (g * sizes_.chunks + c) * sizes_.keys * sizes_.keys;
  }

  int rows_in(std::int64_t block) const {
    std::int64_t const left = sizes_.values - block * rows::size;
    return left < rows::size ? static_cast<int>(left) : rows::size;
  }

  /// The initial state to the first start, the cotangent of the final state to dη, dJ.
  void begin(head const& h, std::int64_t g) {
    std::int64_t const K = sizes_.keys;
    for (std::int64_t block = 0; block < blocks_; ++block) {
      std::int64_t const row = block * rows::size, cell = block * K;
      int const n = rows_in(block);
      if (h.in.tokens > 0) load_state(h.in.eta, row, n, K, start_eta(g, 0) + cell);
      load_state(h.final_eta, row, n, K, d_eta_ + g * state_ + cell);
      if constexpr (Rule::keeps_diagonal) {
        if (h.in.tokens > 0) load_state(h.in.evidence, row, n, K, start_evidence(g, 0) + cell);
        load_state(h.final_evidence, row, n, K, d_evidence_ + g * state_ + cell);
      }
    }
    if constexpr (Rule::keeps_full) {
      double* const d_matrix = d_matrix_ + g * K * K;
      for (std::int64_t i = 0; i < K; ++i)
        for (std::int64_t j = 0; j < K; ++j) {
          if (h.in.tokens > 0) start_matrix(g, 0)[i * K + j] = h.in.evidence.present() ? static_cast<Work>(h.in.evidence(i, j)) : Work{};
          d_matrix[i * K + j] = 0;
          if (h.final_evidence.present())
            d_matrix[i * K + j] =
                0.5 * (static_cast<double>(h.final_evidence(i, j)) + static_cast<double>(h.final_evidence(j, i)));
        }
    }
  }

  static Work row_prior(head_inputs<Storage, Scalar> const& in) {
    return Rule::keeps_diagonal ? static_cast<Work>(in.prior(0, 0)) : Work{};
  }

  /// States at the start of chunk c + 1 from those of chunk c.
  void checkpoint(head const& h, std::int64_t g, std::int64_t c) {
    std::int64_t const first = c * sizes_.chunk, count = sizes_.chunk, K = sizes_.keys;
    x_.open_gates(h.in, first, count);
    for (std::int64_t block = 0; block < blocks_; ++block) {
      rows *const eta = start_eta(g, c + 1) + block * K, *const evidence = start_evidence(g, c + 1) + block * K;
      copy(start_eta(g, c) + block * K, eta);
      if constexpr (Rule::keeps_diagonal) copy(start_evidence(g, c) + block * K, evidence);
      x_.load_values(h.in, first, count, block * rows::size, rows_in(block));
      walk(x_, count, row_prior(h.in), eta, evidence, [](auto...) {});
    }
    if constexpr (Rule::keeps_full) {
      precision_matrix<Work> precision;
      precision.keys = K;
      precision.evidence = start_matrix(g, c + 1);
      for (std::int64_t i = 0; i < K * K; ++i) precision.evidence[i] = start_matrix(g, c)[i];
      for (std::int64_t t = 0; t < count; ++t)
        precision.observe(x_.key + t * K, x_.alpha[t], x_.head_beta(h.in, first, t));
    }
  }

  /// Chunk c of value head g, from its last token to its first.
  void take_back(head const& h, std::int64_t g, std::int64_t c, std::int64_t count) {
    std::int64_t const first = c * sizes_.chunk, K = sizes_.keys;
    x_.open_gates(h.in, first, count);
    std::fill_n(alpha_rows_, count, rows{});
    std::fill_n(beta_rows_, count, rows{});
    if constexpr (Rule::keeps_diagonal) std::fill_n(prior_rows_, count, rows{});
    if constexpr (per_key) std::fill_n(d_alpha_, count * K, Work{});
    if constexpr (Rule::keeps_full) solve(h, g, c, count);
    for (std::int64_t block = 0; block < blocks_; ++block) {
      x_.load_values(h.in, first, count, block * rows::size, rows_in(block));
      x_.load_cotangents(h, first, count, block * rows::size, rows_in(block));
      recompute(h, g, c, count, block);
      if (Rule::keeps_diagonal && h.out_variance.present())
        take_back_rows<Rule::keeps_diagonal>(h, g, first, count, block);
      else
        take_back_rows<false>(h, g, first, count, block);
    }
    leave_sums(h, g, first, count);
  }

  /// J and x = Λ⁻¹q of every token of the chunk, for a full memory.
  void solve(head const& h, std::int64_t g, std::int64_t c, std::int64_t count) {
    std::int64_t const first = c * sizes_.chunk, K = sizes_.keys;
    std::copy_n(x_.query, count * K, solved_);
    std::fill_n(d_solved_, count * K, Work{});
    precision_.begin(start_matrix(g, c), h.in.prior);
    for (std::int64_t t = 0; t < count; ++t)
      precision_.observe(t, x_.key + t * K, x_.alpha[t], x_.head_beta(h.in, first, t), solved_ + t * K);
  }

  /// η, J of one block before every token of the chunk.
  void recompute(head const& h, std::int64_t g, std::int64_t c, std::int64_t count, std::int64_t block) {
    std::int64_t const K = sizes_.keys;
    rows *const eta = state_eta_, *const evidence = state_evidence_;
    copy(start_eta(g, c) + block * K, eta);
    if constexpr (Rule::keeps_diagonal) copy(start_evidence(g, c) + block * K, evidence);
    auto const keep = [=, this](std::int64_t t, std::int64_t first, std::int64_t keys, rows const* e, rows const* J)
                          PALIMPSA_INLINE_LAMBDA {
      for (std::int64_t j = 0; j < keys; ++j) {
        history_eta_[t * K + first + j] = e[j];
        if constexpr (Rule::keeps_diagonal) history_evidence_[t * K + first + j] = J[j];
      }
    };
    walk(x_, count, row_prior(h.in), eta, evidence, keep);
    keep(count, 0, K, eta, evidence);
  }

  /// The tokens of a chunk over one block, in reverse.
  template <bool Variance>
  void take_back_rows(head const& h, std::int64_t g, std::int64_t first, std::int64_t count, std::int64_t block) {
    std::int64_t const row = block * rows::size, K = sizes_.keys;
    int const n = rows_in(block), keys = static_cast<int>(K);
    rows *const d_eta = d_eta_ + g * state_ + block * K, *const d_evidence = d_evidence_ + g * state_ + block * K;
    for (std::int64_t t = count - 1; t >= 0; --t) {
      rows query{}, key{}, alpha{};
      auto d = take_back_token<Variance>(t, row_prior(h.in), d_eta, d_evidence, &query, &key, &alpha);
      if (Work const unit = x_.unit[t]; unit != 1) {
        d.v = d.v * value_unit<typename Rule::weighting_type>(unit);
        d.beta = d.beta * beta_unit(unit);
      }
      if (keys % 2 == 1) {
        query_pairs_[keys / 2] = meet(query, rows{});
        key_pairs_[keys / 2] = meet(key, rows{});
        if constexpr (per_key) alpha_pairs_[keys / 2] = meet(alpha, rows{});
      }
      fold_pairs(query_pairs_, keys, (Rule::keeps_full ? d_solved_ : d_query_) + t * K);
      fold_pairs(key_pairs_, keys, d_key_ + t * K);
      if constexpr (per_key) fold_pairs(alpha_pairs_, keys, d_alpha_ + t * K);
      if (h.v.present()) detail::scatter(d.v, h.v, first + t, row, n);
      if (h.beta_per_channel && h.beta.present()) detail::scatter(d.beta, h.beta, first + t, row, n);
      beta_rows_[t] = beta_rows_[t] + d.beta;
      alpha_rows_[t] = alpha_rows_[t] + d.alpha;
      if constexpr (Rule::keeps_diagonal) prior_rows_[t] = prior_rows_[t] + d.prior;
    }
  }

  /// Token t over one block, in reverse. Cells of two keys meet before they are stored, which halves the stores; where the number
  /// of keys is odd the last ones stay in query, key and alpha.
  template <bool Variance>
  PALIMPSA_INLINE row_cotangent<rows> take_back_token(std::int64_t t, Work prior, rows* d_eta, rows* d_evidence, rows* query,
                                                      rows* key, rows* alpha) {
    std::int64_t const K = sizes_.keys;
    rows const *const eta = history_eta_ + t * K, *const evidence = history_evidence_ + t * K;
    rows *const query_pairs = query_pairs_, *const key_pairs = key_pairs_, *const alpha_pairs = alpha_pairs_;
    Work const gate = x_.alpha[t * x_.gates];  // a copy on the stack, which no store can change
    token<Work> const x{x_.key + t * K, (Rule::keeps_full ? solved_ : x_.query) + t * K,
                          per_key ? x_.alpha + t * K : &gate};
    return observe_adjoint<Rule, Variance>(
        sparing_lanes<rows>{{static_cast<int>(K)}, x_.spare}, row_state<rows>{eta, evidence}, row_state<rows>{eta + K, evidence + K}, d_eta,
        d_evidence, x_.squares.with(x, t), x_.value[t], x_.beta[t], prior, x_.read[t],
        [=](int j, rows d_query, rows d_key, rows d_alpha) PALIMPSA_INLINE_LAMBDA {
          if constexpr (!Rule::adds) __builtin_prefetch(eta - K + j);
          if ((j & 1) == 0) {
            *query = d_query;
            *key = d_key;
            if constexpr (per_key) *alpha = d_alpha;
          } else {
            query_pairs[j >> 1] = meet(*query, d_query);
            key_pairs[j >> 1] = meet(*key, d_key);
            if constexpr (per_key) alpha_pairs[j >> 1] = meet(*alpha, d_alpha);
          }
        });
  }

  /// What a chunk gives to its head: dβ a head, dlog_decay, dprior; sums over rows and tokens in double.
  void leave_sums(head const& h, std::int64_t g, std::int64_t first, std::int64_t count) {
    std::int64_t const K = sizes_.keys;
    for (std::int64_t t = count - 1; t >= 0; --t) {
      double d_beta = wide_sum(beta_rows_[t]), d_alpha = wide_sum(alpha_rows_[t]);
      if constexpr (Rule::keeps_diagonal) *h.prior += wide_sum(prior_rows_[t]);
      if constexpr (Rule::keeps_full) {
        auto const shared = precision_.reverse(t, x_.key + t * K, x_.alpha[t], x_.head_beta(h.in, first, t), d_solved_ + t * K,
                                               d_matrix_ + g * K * K, d_query_ + t * K, d_key_ + t * K, h.prior);
        d_beta += shared.beta * beta_unit(static_cast<double>(x_.unit[t]));
        d_alpha += shared.alpha;
      }
      if (!h.beta_per_channel && h.beta.present()) h.beta(first + t, 0) = static_cast<Scalar>(d_beta);
      leave_gates(h, first + t, x_.alpha + t * x_.gates, d_alpha, d_alpha_ + t * K);
    }
  }

  /// dlog_decay of one token from dα.
  void leave_gates(head const& h, std::int64_t t, Work const* alpha, double d_alpha, Work const* d_alpha_keys) const {
    if (!h.in.log_decay.present()) return;
    auto const slope = [&](std::int64_t j) { return forget::slope(static_cast<Work>(h.in.log_decay(t, j)), alpha[j]); };
    if constexpr (forget::scope == gate_scope::constant) {
      *h.constant_gate = fused(static_cast<double>(slope(0)), d_alpha, *h.constant_gate);
    } else if (!h.log_decay.present()) {
      return;
    } else if constexpr (per_key) {
      for (std::int64_t j = 0; j < sizes_.keys; ++j) h.log_decay(t, j) = static_cast<Scalar>(slope(j) * d_alpha_keys[j]);
    } else {
      h.log_decay(t, 0) = static_cast<Scalar>(static_cast<double>(slope(0)) * d_alpha);
    }
  }

  void leave_state(head const& h, std::int64_t g) const {
    std::int64_t const K = sizes_.keys;
    for (std::int64_t block = 0; block < blocks_; ++block) {
      std::int64_t const cell = g * state_ + block * K;
      if (h.initial_eta.present()) store_state(d_eta_ + cell, h.initial_eta, block * rows::size, rows_in(block), K);
      if constexpr (Rule::keeps_diagonal)
        if (h.initial_evidence.present())
          store_state(d_evidence_ + cell, h.initial_evidence, block * rows::size, rows_in(block), K);
    }
    if constexpr (Rule::keeps_full)
      if (h.initial_evidence.present())
        for (std::int64_t i = 0; i < K; ++i)
          for (std::int64_t j = 0; j < K; ++j)
            h.initial_evidence(i, j) = static_cast<Scalar>(d_matrix_[(g * K + i) * K + j]);
  }

  void copy(rows const* from, rows* to) const {
    for (std::int64_t j = 0; j < sizes_.keys; ++j) to[j] = from[j];
  }

  backward_sizes sizes_;
  std::int64_t blocks_, state_;  // packs of rows a head, packs a state
  rows *start_eta_, *start_evidence_;
  Work* start_matrix_;
  rows *d_eta_, *d_evidence_;
  double* d_matrix_;
  rows *state_eta_, *state_evidence_, *history_eta_, *history_evidence_;
  backward_tokens<Rule, Storage, Scalar, Work> x_;
  Work* solved_;
  Work *d_query_, *d_key_, *d_solved_, *d_alpha_;
  rows *query_pairs_, *key_pairs_, *alpha_pairs_;  // cells of one token and block, on their way to a sum over rows
  rows *alpha_rows_, *beta_rows_, *prior_rows_;    // of each token, summed over blocks
  precision_adjoint precision_;
};

}  // namespace palimpsa::cpu
