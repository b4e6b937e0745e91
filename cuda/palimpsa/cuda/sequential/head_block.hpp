#pragma once
/// @file
/// The head stage of a full memory: a team of threads takes a head's tokens in order, J ← αJ + β k kᵀ, and solves x = Λ⁻¹q after
/// each. The rows then read η·x like any other query. Host and device; head_kernel.cuh adds threads and memory.

#include <cstdint>

#include "palimpsa/cuda/sequential/conjugate_gradient.hpp"
#include "palimpsa/cuda/entry/problem.hpp"
#include "palimpsa/rule.hpp"
#include "palimpsa/storage.hpp"

namespace palimpsa::cuda {

/// What the head stage is handed.
template <class Storage>
struct head_problem {
  row_problem<Storage> rows;      ///< the caller's tensors
  view<float> solved;             ///< x [B,T,HV,K], workspace
  float* matrices = nullptr;      ///< K×K a block in device memory, where shared memory is too small
  int most_iterations = 0;        ///< of a solve
  float tolerance = 1e-7f;        ///< of a solve
};

/// The state of one head: J and the vectors of its solve, wherever they lie, and the key of the token at hand.
struct head_memory {
  linear_system system;  ///< (J + diag(prior)) x = q, and its vectors
  float* key;            ///< of the token at hand, [K]

  /// Floats of the vectors, apart from J.
  PALIMPSA_HD static constexpr int vectors(int keys) { return linear_system::vectors(keys) + keys; }

  /// Lays the vectors out.
  PALIMPSA_HD static head_memory over(float* matrix, float* vectors, int keys) {
    return {linear_system::over(matrix, vectors, keys), vectors + linear_system::vectors(keys)};
  }
};

namespace detail {

/// Copies J from or to a state. Evidence below 0 on the diagonal is flagged (as it is copied: a walk of its own made the kernel spill,
/// which took a quarter more time).
template <class Team>
PALIMPSA_HD void load_matrix(Team const& team, plane<float const> state, unsigned* status, head_memory const& m) {
  int const K = m.system.keys;
  for (int e = team.rank(); e < K * K; e += team.size()) {
    float const x = state.present() ? state(e / K, e % K) : 0.0f;
    if (x < 0 && e / K == e % K) flag(status, negative_evidence);
    m.system.evidence[e] = x;
  }
}
template <class Team>
PALIMPSA_HD void store_matrix(Team const& team, plane<float> state, head_memory const& m) {
  int const K = m.system.keys;
  if (!state.present()) return;
  for (int e = team.rank(); e < K * K; e += team.size()) state(e / K, e % K) = m.system.evidence[e];
}

/// J ← αJ + β k kᵀ for token t of a sequence, and its query, widened.
template <class Rule, class Team, class Storage>
PALIMPSA_HD void take_token(Team const& team, row_problem<Storage> const& p, segment const& s, std::int64_t head,
                            std::int64_t t, head_memory const& m) {
  int const K = m.system.keys;
  std::int64_t const key_head = head / p.shape.group();
  plane<Storage const> const k = tokens_of(p.k, s, key_head), q = tokens_of(p.q, s, key_head);
  for (int j = team.rank(); j < K; j += team.size()) {
    m.key[j] = storage<Storage>::load(k(t, j));
    m.system.query[j] = storage<Storage>::load(q(t, j));
  }
  plane<float const> const gate = gates_of<typename Rule::forget_type>(p.log_decay, s, head), betas = tokens_of(p.beta, s, head);
  float alpha = 1;
  if (gate.present()) {
    float const log_decay = gate(t, 0);
    if (log_decay > 0) flag(p.status, positive_gate);
    alpha = Rule::forget_type::retain(log_decay);
  }
  float const beta = betas.present() ? betas(t, 0) : 1.0f;
  if (beta < 0) flag(p.status, negative_beta);
  team.sync();
  for (int e = team.rank(); e < K * K; e += team.size())
    m.system.evidence[e] = alpha * m.system.evidence[e] + beta * (m.key[e / K] * m.key[e % K]);
  team.sync();
}

}  // namespace detail

/// All tokens of one head of one sequence.
template <class Rule, class Team, class Storage>
PALIMPSA_HD void run_head(Team const& team, head_problem<Storage> const& p, std::int64_t sequence, std::int64_t head,
                          head_memory const& m) {
  row_problem<Storage> const& r = p.rows;
  bool const reports = head == 0 && team.rank() == 0;
  sequence_place const place = place_of(r, sequence, reports);
  if (place.inert) return;
  int const K = m.system.keys;
  plane<float const> const prior = prior_of(r.prior, head);
  for (int j = team.rank(); j < K; j += team.size()) {
    m.system.prior[j] = prior(0, j);
    if (!is_prior(prior(0, j))) flag(r.status, bad_prior);
  }
  detail::load_matrix(team, place.read < 0 ? plane<float const>{} : state_of(r.evidence_in, place.read, head), r.status, m);
  team.sync();
  plane<float> const solved = tokens_of(p.solved, place.tokens, head), variance = tokens_of(r.out_variance, place.tokens, head);
  auto const leave = [&](std::int64_t t) {
    std::int64_t const to = written_state(r, place, sequence, t, reports);
    if (to >= 0) detail::store_matrix(team, state_of(r.evidence_out, to, head), m);
  };
  if (place.tokens.length == 0) leave(-1);
  for (std::int64_t t = 0; t < place.tokens.length; ++t) {
    detail::take_token<Rule>(team, r, place.tokens, head, t, m);
    solve(team, m.system, p.most_iterations, p.tolerance);
    float share = 0;
    for (int j = team.rank(); j < K; j += team.size()) {
      solved(t, j) = m.system.solution[j];
      share += m.system.solution[j] * m.system.query[j];
    }
    if (variance.present()) {
      float const w = team.sum(share) * r.scale * r.scale;
      for (std::int64_t i = team.rank(); i < r.shape.values; i += team.size()) variance(t, i) = w;
    }
    leave(t);
    team.sync();
  }
}

}  // namespace palimpsa::cuda
