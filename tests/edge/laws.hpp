#pragma once
// What is granted beyond a handful of roundings, and to whom: points and gradients for which no form is known that is free of a difference
// of nearly equal numbers, or none that is cheap. Where one key carries all, a token leaves 1/(1 + X) of what was there, and a rounding of
// what was there is 1 + X of what is left; n tokens in a row do so n times:
//
//     error ≤ (16 ε + (1 + 4 ε (1 + X))ⁿ - 1) (|right| + condition)        X: the greatest β Σ_j k_j²/R_j that a token meets
//
// For small X and few tokens that is the bound of everything else. In chunks the correction of the whole chunk is one difference, so what
// is left is off by some ε of what the memory held before, S: 16 ε (|right| + condition) + 4 ε S. docs/numerics.md, "Where one key carries
// all", has it in words.

#include <algorithm>
#include <cmath>

#include "edge/edge_problem.hpp"

namespace palimpsa_test {

/// What a result may be off by: units of ε (|right| + condition), and an absolute number.
struct allowance {
  double units, absolute = 0;
};

/// Roundings of a handful of operations and sums of up to 33 terms, in ε.
inline constexpr double few_roundings = 16;

/// α of a token and key.
inline double retained(edge_problem const& p, std::size_t t, std::size_t j) {
  auto const T = static_cast<std::size_t>(p.T), K = static_cast<std::size_t>(p.K), given = p.log_decay.size();
  return given == 0 ? 1 : std::exp(p.log_decay[given == 1 ? 0 : given == T ? t : t * K + j]);
}

/// X: the greatest β Σ_j k_j²/R_j of a token and row; of a full memory tr(J)/prior, which its condition is at most, but for 1.
inline double carried(axes r, edge_problem const& p) {
  auto const T = static_cast<std::size_t>(p.T), K = static_cast<std::size_t>(p.K), V = static_cast<std::size_t>(p.V);
  bool const full = r.memory == keeps::full, diagonal = r.memory == keeps::diagonal;
  double most = 0;
  for (std::size_t i = 0; i < (full ? 1 : V); ++i) {
    numbers J(K, 0.0);
    for (std::size_t j = 0; j < K && r.memory != keeps::nothing; ++j) J[j] = p.J[full ? j * K + j : i * K + j];
    for (std::size_t t = 0; t < T; ++t) {
      double total = 0;
      for (std::size_t j = 0; j < K; ++j) {
        double const written = p.beta[p.beta_per_channel ? t * V + i : t] * p.k[t * K + j] * p.k[t * K + j];
        double const before = retained(p, t, j) * J[j];
        J[j] = before + written;
        total += full ? J[j] / p.prior[0] : written / (diagonal ? p.prior[0] + before : 1);
      }
      most = (std::max)(most, total);
    }
  }
  return most;
}

/// The greatest entry of a list in size.
inline double largest_of(numbers const& x) {
  double most = 0;
  for (double y : x) most = (std::max)(most, std::fabs(y));
  return most;
}

/// S: what a memory can hold at most, its first mean and what it is told, u k/(1 + β k²) of every token.
inline double held_before(axes r, edge_problem const& p) {
  auto const K = static_cast<std::size_t>(p.K), V = static_cast<std::size_t>(p.V);
  double told = largest_of(p.eta) / (r.memory == keeps::nothing ? 1 : p.prior[0]);
  for (std::size_t t = 0; t < static_cast<std::size_t>(p.T); ++t) {
    double own = 0, key = 0, value = 0;
    for (std::size_t j = 0; j < K; ++j) own += p.k[t * K + j] * p.k[t * K + j], key = (std::max)(key, std::fabs(p.k[t * K + j]));
    for (std::size_t i = 0; i < V; ++i) value = (std::max)(value, std::fabs(p.v[t * V + i]));
    double const beta = p.beta[p.beta_per_channel ? t * V : t];
    told += (r.preweighted ? 1 : beta) * value * key / (1 + beta * own);
  }
  return told;
}

/// Whether a gain fits no evidence that it is given: its exact form is not known.
inline bool misfits(axes r) {
  bool const own_share = r.memory == keeps::diagonal && r.evidence == sees::own;
  return r.gain == moves::elementwise && !own_share;
}

/// Whether the law of X is granted to a result of this point, token by token.
inline bool loses(axes r, result x) {
  if (r.memory == keeps::full) return x >= result::d_q;  // what passes through Λ⁻¹ twice
  if (misfits(r)) return true;
  if (r.memory == keeps::nothing) return r.gain == moves::exact && r.evidence == sees::nothing && x == result::d_beta;
  // dJ at a fixed η is carried back through what later tokens overwrite
  return x == result::d_beta || x == result::d_log_decay || x == result::d_prior || x == result::d_k;
}

/// What a result of this problem may be off by. `chunks`: forward by matrix products.
inline allowance allowed(axes r, bool chunks, edge_problem const& p, std::size_t which, double epsilon) {
  auto const x = static_cast<result>(which);
  if (chunks) {
    if (r.gain != moves::exact) return {few_roundings};
    double const read = std::fabs(p.scale) * largest_of(p.q) * static_cast<double>(p.K);
    return {few_roundings, 4 * epsilon * held_before(r, p) * (x == result::out ? read : 1)};
  }
  if (!loses(r, x)) return {few_roundings};
  double const X = carried(r, p);
  double const n_tokens = std::expm1(static_cast<double>(p.T) * std::log1p(4 * epsilon * (1 + X))) / epsilon;
  if (misfits(r) && (x == result::d_prior || x == result::d_J))  // 1/(1 + X)² of it is right; the terms of dη cancel in it as well
    return {few_roundings + 4 * (1 + X) * (1 + X), 4 * epsilon * (1 + X) * largest_of(p.d_eta) * held_before(r, p)};
  return {few_roundings + n_tokens};
}

}  // namespace palimpsa_test
