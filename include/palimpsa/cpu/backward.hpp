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

#include <cstdint>

#include "palimpsa/adjoint.hpp"
#include "palimpsa/cpu/backward_fold.hpp"
#include "palimpsa/cpu/backward_solve.hpp"
#include "palimpsa/cpu/head.hpp"
#include "palimpsa/cpu/rows.hpp"
#include "palimpsa/recurrence.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::cpu {

/// The sizes that fix the scratch of one thread.
struct backward_sizes {
  std::int64_t keys;    ///< K
  std::int64_t values;  ///< V
  std::int64_t group;   ///< value heads a key head
  std::int64_t chunks;  ///< of the longest sequence
  std::int64_t chunk;   ///< tokens a chunk, no more than the longest sequence has
};

/// What one value head of one sequence is asked for, and where its gradients go; absent planes are zero, or not written.
template <class Storage, class Scalar>
struct head_backward {
  head_inputs<Storage, Scalar> in;         ///< what the head read
  plane<Storage const> out;                ///< ∂loss/∂out [T,V]
  plane<Scalar const> out_variance;        ///< ∂loss/∂out_variance [T,V]
  plane<Scalar const> final_eta, final_evidence;  ///< ∂loss/∂ the state left
  plane<Storage> v;                        ///< gradient [T,V]
  plane<Scalar> beta, log_decay;           ///< gradients [T, 1 or V], [T, 1 or K]
  bool beta_per_channel = false;           ///< beta has one number a value row
  plane<Scalar> initial_eta, initial_evidence;  ///< gradients
  double* prior = nullptr;                 ///< this head's sum of dprior: 1, or K for a full memory
  double* constant_gate = nullptr;         ///< this head's sum of dlog_decay where the gate is constant
};

/// Takes back key heads one after another in one thread's scratch.
template <class Rule, class Storage, class Scalar>
class backward_runner {
 public:
  using rows = native_pack<Scalar>;                     ///< a pack of value rows
  using head = head_backward<Storage, Scalar>;          ///< one value head
  using forget = typename Rule::forget_type;            ///< how the rule forgets

  /// Takes the scratch of one thread; counts only if the arena does.
  backward_runner(arena& memory, backward_sizes const& s)
      : sizes_(s),
        blocks_((s.values + rows::size - 1) / rows::size),
        gates_(per_key ? s.keys : 1),
        state_(blocks_ * s.keys),
        start_eta_(memory.take<rows>(s.group * s.chunks * state_)),
        start_evidence_(memory.take<rows>(Rule::keeps_diagonal ? s.group * s.chunks * state_ : 0)),
        start_matrix_(memory.take<Scalar>(Rule::keeps_full ? s.group * s.chunks * s.keys * s.keys : 0)),
        d_eta_(memory.take<rows>(s.group * state_)),
        d_evidence_(memory.take<rows>(Rule::keeps_diagonal ? s.group * state_ : 0)),
        d_matrix_(memory.take<double>(Rule::keeps_full ? s.group * s.keys * s.keys : 0)),
        history_eta_(memory.take<rows>(s.chunk * s.keys)),
        history_evidence_(memory.take<rows>(Rule::keeps_diagonal ? s.chunk * s.keys : 0)),
        key_(memory.take<Scalar>(s.chunk * s.keys)),
        query_(memory.take<Scalar>(s.chunk * s.keys)),
        solved_(memory.take<Scalar>(Rule::keeps_full ? s.chunk * s.keys : 0)),
        alpha_(memory.take<Scalar>(s.chunk * gates_)),
        d_query_(memory.take<Scalar>(s.chunk * s.keys)),
        d_key_(memory.take<Scalar>(s.chunk * s.keys)),
        d_solved_(memory.take<Scalar>(Rule::keeps_full ? s.chunk * s.keys : 0)),
        d_alpha_(memory.take<Scalar>(per_key ? s.chunk * s.keys : 0)),
        query_cells_(memory.take<rows>(s.keys)),
        key_cells_(memory.take<rows>(s.keys)),
        alpha_cells_(memory.take<rows>(per_key ? s.keys : 0)),
        alpha_rows_(memory.take<rows>(s.chunk)),
        beta_rows_(memory.take<rows>(s.chunk)),
        prior_rows_(memory.take<rows>(Rule::keeps_diagonal ? s.chunk : 0)) {
    if constexpr (Rule::keeps_full) precision_.take(memory, s.keys, s.chunk);
  }

  /// All value heads of one key head of one sequence. head_at(g) describes value head g of the group; d_q and d_k [T,K] may be absent.
  template <class HeadAt>
  void run(HeadAt head_at, plane<Storage> d_q, plane<Storage> d_k) {
    head const first = head_at(0);
    std::int64_t const chunks = (first.in.tokens + sizes_.chunk - 1) / sizes_.chunk;
    for (std::int64_t g = 0; g < sizes_.group; ++g) begin(head_at(g), g);
    for (std::int64_t c = 0; c + 1 < chunks; ++c) {
      widen(first.in, c);
      for (std::int64_t g = 0; g < sizes_.group; ++g) checkpoint(head_at(g), g, c);
    }
    for (std::int64_t c = chunks - 1; c >= 0; --c) {
      std::int64_t const count = widen(first.in, c);
      for (std::int64_t i = 0; i < count * sizes_.keys; ++i) d_query_[i] = d_key_[i] = Scalar{};
      for (std::int64_t g = 0; g < sizes_.group; ++g) take_back(head_at(g), g, c, count);
      leave_tokens(d_query_, d_q, c, count);
      leave_tokens(d_key_, d_k, c, count);
    }
    for (std::int64_t g = 0; g < sizes_.group; ++g) leave_state(head_at(g), g);
  }

 private:
  static constexpr bool per_key = forget::scope == gate_scope::key;

  /// η at the start of chunk c of value head g, all blocks; J lies likewise.
  rows* start_eta(std::int64_t g, std::int64_t c) const { return start_eta_ + (g * sizes_.chunks + c) * state_; }
  rows* start_evidence(std::int64_t g, std::int64_t c) const { return start_evidence_ + (g * sizes_.chunks + c) * state_; }
  Scalar* start_matrix(std::int64_t g, std::int64_t c) const {
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
          if (h.in.tokens > 0) start_matrix(g, 0)[i * K + j] = h.in.evidence.present() ? h.in.evidence(i, j) : Scalar{};
          d_matrix[i * K + j] = 0;
          if (h.final_evidence.present())
            d_matrix[i * K + j] =
                0.5 * (static_cast<double>(h.final_evidence(i, j)) + static_cast<double>(h.final_evidence(j, i)));
        }
    }
  }

  /// Widens keys and queries of chunk c; returns its number of tokens.
  std::int64_t widen(head_inputs<Storage, Scalar> const& in, std::int64_t c) {
    std::int64_t const first = c * sizes_.chunk, left = in.tokens - first, count = left < sizes_.chunk ? left : sizes_.chunk;
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t j = 0; j < sizes_.keys; ++j) {
        key_[t * sizes_.keys + j] = static_cast<Scalar>(storage<Storage>::load(in.k(first + t, j)));
        query_[t * sizes_.keys + j] = static_cast<Scalar>(storage<Storage>::load(in.q(first + t, j)));
      }
    return count;
  }

  void open_gates(head_inputs<Storage, Scalar> const& in, std::int64_t first, std::int64_t count) {
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t j = 0; j < gates_; ++j)
        alpha_[t * gates_ + j] = in.log_decay.present() ? forget::retain(in.log_decay(first + t, j)) : Scalar(1);
  }

  token<Scalar> token_at(std::int64_t t, Scalar const* query) const {
    return {key_ + t * sizes_.keys, query + t * sizes_.keys, alpha_ + t * gates_};
  }

  static Scalar head_beta(head_inputs<Storage, Scalar> const& in, std::int64_t t) {
    return in.beta.present() ? in.beta(t, 0) : Scalar(1);
  }
  PALIMPSA_INLINE static rows row_beta(head_inputs<Storage, Scalar> const& in, std::int64_t t, std::int64_t row, int n) {
    return in.beta.present() ? load_rows<rows>(&in.beta(t, row), in.beta.column, n) : rows::broadcast(Scalar(1));
  }

  /// Token t of the chunk from `first` over one block, in place, without its read.
  void advance(head_inputs<Storage, Scalar> const& in, std::int64_t first, std::int64_t t, std::int64_t block, rows* eta,
               rows* evidence) const {
    std::int64_t const row = block * rows::size;
    int const n = rows_in(block);
    Scalar const prior = Rule::keeps_diagonal ? in.prior(0, 0) : Scalar{};
    rows const v = load_rows<rows>(&in.v(first + t, row), in.v.column, n);
    observe<Rule>(serial_lanes{static_cast<int>(sizes_.keys)}, eta, evidence, token_at(t, query_), v,
                  row_beta(in, first + t, row, n), prior);
  }

  /// States at the start of chunk c + 1 from those of chunk c.
  void checkpoint(head const& h, std::int64_t g, std::int64_t c) {
    std::int64_t const first = c * sizes_.chunk, count = sizes_.chunk, K = sizes_.keys;
    open_gates(h.in, first, count);
    for (std::int64_t block = 0; block < blocks_; ++block) {
      rows *const eta = start_eta(g, c + 1) + block * K, *const evidence = start_evidence(g, c + 1) + block * K;
      copy(start_eta(g, c) + block * K, eta);
      if constexpr (Rule::keeps_diagonal) copy(start_evidence(g, c) + block * K, evidence);
      for (std::int64_t t = 0; t < count; ++t) advance(h.in, first, t, block, eta, evidence);
    }
    if constexpr (Rule::keeps_full) {
      precision_matrix<Scalar> precision;
      precision.keys = K;
      precision.evidence = start_matrix(g, c + 1);
      for (std::int64_t i = 0; i < K * K; ++i) precision.evidence[i] = start_matrix(g, c)[i];
      for (std::int64_t t = 0; t < count; ++t) precision.observe(key_ + t * K, alpha_[t], head_beta(h.in, first + t));
    }
  }

  /// Chunk c of value head g, from its last token to its first.
  void take_back(head const& h, std::int64_t g, std::int64_t c, std::int64_t count) {
    std::int64_t const first = c * sizes_.chunk, K = sizes_.keys;
    open_gates(h.in, first, count);
    for (std::int64_t t = 0; t < count; ++t) {
      alpha_rows_[t] = beta_rows_[t] = rows{};
      if constexpr (Rule::keeps_diagonal) prior_rows_[t] = rows{};
    }
    if constexpr (per_key)
      for (std::int64_t i = 0; i < count * K; ++i) d_alpha_[i] = Scalar{};
    if constexpr (Rule::keeps_full) solve(h, g, c, count);
    for (std::int64_t block = 0; block < blocks_; ++block) {
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
    for (std::int64_t i = 0; i < count * K; ++i) {
      solved_[i] = query_[i];
      d_solved_[i] = Scalar{};
    }
    precision_.begin(start_matrix(g, c));
    for (std::int64_t t = 0; t < count; ++t)
      precision_.observe(t, key_ + t * K, alpha_[t], head_beta(h.in, first + t), h.in.prior, solved_ + t * K);
  }

  /// η, J of one block before every token of the chunk.
  void recompute(head const& h, std::int64_t g, std::int64_t c, std::int64_t count, std::int64_t block) {
    std::int64_t const K = sizes_.keys;
    copy(start_eta(g, c) + block * K, history_eta_);
    if constexpr (Rule::keeps_diagonal) copy(start_evidence(g, c) + block * K, history_evidence_);
    for (std::int64_t t = 0; t + 1 < count; ++t) {
      rows *const eta = history_eta_ + (t + 1) * K, *const evidence = history_evidence_ + (t + 1) * K;
      copy(eta - K, eta);
      if constexpr (Rule::keeps_diagonal) copy(evidence - K, evidence);
      advance(h.in, c * sizes_.chunk, t, block, eta, evidence);
    }
  }

  /// The tokens of a chunk over one block, in reverse.
  template <bool Variance>
  void take_back_rows(head const& h, std::int64_t g, std::int64_t first, std::int64_t count, std::int64_t block) {
    serial_lanes const lanes{static_cast<int>(sizes_.keys)};
    std::int64_t const row = block * rows::size, K = sizes_.keys;
    int const n = rows_in(block);
    Scalar const prior = Rule::keeps_diagonal ? h.in.prior(0, 0) : Scalar{}, scale = h.in.scale;
    rows *const d_eta = d_eta_ + g * state_ + block * K, *const d_evidence = d_evidence_ + g * state_ + block * K;
    rows *const query_cells = query_cells_, *const key_cells = key_cells_, *const alpha_cells = alpha_cells_;
    for (std::int64_t t = count - 1; t >= 0; --t) {
      rows const v = load_rows<rows>(&h.in.v(first + t, row), h.in.v.column, n);
      read_cotangent<rows> y{rows{}, rows{}};
      if (h.out.present()) y.mean = load_rows<rows>(&h.out(first + t, row), h.out.column, n) * scale;
      if constexpr (Variance)
        y.variance = load_rows<rows>(&h.out_variance(first + t, row), h.out_variance.column, n) * (scale * scale);
      auto const d = observe_adjoint<Rule, Variance>(
          lanes, history_eta_ + t * K, history_evidence_ + t * K, d_eta, d_evidence,
          token_at(t, Rule::keeps_full ? solved_ : query_), v, row_beta(h.in, first + t, row, n), prior, y,
          [=](int j, key_cotangent<rows> cell) PALIMPSA_INLINE_LAMBDA {
            query_cells[j] = cell.query;
            key_cells[j] = cell.key;
            if constexpr (per_key) alpha_cells[j] = cell.alpha;
          });
      fold_rows(query_cells_, K, (Rule::keeps_full ? d_solved_ : d_query_) + t * K);
      fold_rows(key_cells_, K, d_key_ + t * K);
      if constexpr (per_key) fold_rows(alpha_cells_, K, d_alpha_ + t * K);
      if (h.v.present()) store_rows(d.v, &h.v(first + t, row), h.v.column, n);
      if (h.beta_per_channel && h.beta.present()) store_rows(d.beta, &h.beta(first + t, row), h.beta.column, n);
      beta_rows_[t] = beta_rows_[t] + d.beta;
      alpha_rows_[t] = alpha_rows_[t] + d.alpha;
      if constexpr (Rule::keeps_diagonal) prior_rows_[t] = prior_rows_[t] + d.prior;
    }
  }

  /// What a chunk gives to its head: dβ a head, dlog_decay, dprior; sums over rows and tokens in double.
  void leave_sums(head const& h, std::int64_t g, std::int64_t first, std::int64_t count) {
    std::int64_t const K = sizes_.keys;
    for (std::int64_t t = count - 1; t >= 0; --t) {
      double d_beta = wide_sum(beta_rows_[t]), d_alpha = wide_sum(alpha_rows_[t]);
      if constexpr (Rule::keeps_diagonal) *h.prior += wide_sum(prior_rows_[t]);
      if constexpr (Rule::keeps_full) {
        auto const shared = precision_.reverse(t, key_ + t * K, static_cast<double>(alpha_[t]),
                                               static_cast<double>(head_beta(h.in, first + t)), d_solved_ + t * K,
                                               d_matrix_ + g * K * K, d_query_ + t * K, d_key_ + t * K, h.prior);
        d_beta += shared.beta;
        d_alpha += shared.alpha;
      }
      if (!h.beta_per_channel && h.beta.present()) h.beta(first + t, 0) = static_cast<Scalar>(d_beta);
      leave_gates(h, first + t, alpha_ + t * gates_, d_alpha, d_alpha_ + t * K);
    }
  }

  /// dlog_decay of one token from dα.
  void leave_gates(head const& h, std::int64_t t, Scalar const* alpha, double d_alpha, Scalar const* d_alpha_keys) const {
    if (!h.in.log_decay.present()) return;
    auto const slope = [&](std::int64_t j) { return forget::slope(h.in.log_decay(t, j), alpha[j]); };
    if constexpr (forget::scope == gate_scope::constant) {
      *h.constant_gate += static_cast<double>(slope(0)) * d_alpha;
    } else if (!h.log_decay.present()) {
      return;
    } else if constexpr (per_key) {
      for (std::int64_t j = 0; j < sizes_.keys; ++j) h.log_decay(t, j) = slope(j) * d_alpha_keys[j];
    } else {
      h.log_decay(t, 0) = static_cast<Scalar>(static_cast<double>(slope(0)) * d_alpha);
    }
  }

  void leave_tokens(Scalar const* sums, plane<Storage> gradient, std::int64_t c, std::int64_t count) const {
    using wide = typename storage<Storage>::scalar;
    if (!gradient.present()) return;
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t j = 0; j < sizes_.keys; ++j)
        gradient(c * sizes_.chunk + t, j) = storage<Storage>::store(static_cast<wide>(sums[t * sizes_.keys + j]));
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
  std::int64_t blocks_, gates_, state_;  // packs of rows a head, gates a token, packs a state
  rows *start_eta_, *start_evidence_;
  Scalar* start_matrix_;
  rows *d_eta_, *d_evidence_;
  double* d_matrix_;
  rows *history_eta_, *history_evidence_;
  Scalar *key_, *query_, *solved_, *alpha_;
  Scalar *d_query_, *d_key_, *d_solved_, *d_alpha_;
  rows *query_cells_, *key_cells_, *alpha_cells_;  // of one token and block, before they are folded
  rows *alpha_rows_, *beta_rows_, *prior_rows_;    // of each token, summed over blocks
  precision_adjoint<Scalar> precision_;
};

}  // namespace palimpsa::cpu
