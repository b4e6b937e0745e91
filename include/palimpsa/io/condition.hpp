#pragma once
/// @file
/// The condition of the linear systems a case poses, in double, for the bounds of its tensors:
///
///     MesaNet       Λ_t = diag(prior) + J_t,  J_t = α_t J_{t-1} + β_t k_t k_tᵀ       a system for every token
///     DeltaNets     I + L,  L_ij = g_i (k_i · k_j α_{j+1} ... α_i) for j < i         a system for every chunk
///
/// Both are 2-norm conditions, the largest over tokens or chunks, heads and sequences. Where that would be more work
/// than running the case a subset is taken, evenly spread, the last of each sequence included: the bound is then
/// tighter, never looser.

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/case_data.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {
namespace detail {

/// A case as one head of one sequence sees it. The library has accepted its shapes.
struct head_reader {
  case_file const& given;  // NOLINT: lives shorter than the case
  std::int64_t value_heads, key_heads, keys, head;

  head_reader(case_file const& given_case, std::int64_t which)
      : given(given_case),
        value_heads(given_case.v->shape[2]),
        key_heads(given_case.q->shape[2]),
        keys(given_case.q->shape[3]),
        head(which) {}

  static double at(case_tensor<double> const& x, std::int64_t i) { return x.values[static_cast<std::size_t>(i)]; }

  /// k of a token; tokens of all batch rows are numbered through.
  Eigen::Map<Eigen::VectorXd const> key(std::int64_t token) const {
    std::int64_t const place = (token * key_heads + head / (value_heads / key_heads)) * keys;
    return {given.k->values.data() + place, static_cast<Eigen::Index>(keys)};
  }
  /// β; 1 where it is absent. One a head: neither system is posed otherwise.
  double beta(std::int64_t token) const { return given.beta ? at(*given.beta, token * value_heads + head) : 1; }
  /// log_decay, for a key channel where there is one each; 0 where it is absent.
  double log_decay(std::int64_t token, std::int64_t channel) const {
    if (!given.log_decay) return 0;
    std::int64_t const place = token * value_heads + head;
    return at(*given.log_decay, given.log_decay->shape.size() > 3 ? place * keys + channel : place);
  }
  double prior(std::int64_t channel) const {
    return at(*given.prior, given.prior->shape.size() > 1 ? head * keys + channel : head);
  }
};

/// Where a sequence lies among the tokens of all batch rows.
struct token_range {
  std::int64_t first, last;
};

inline std::vector<token_range> sequences_of(case_file const& given) {
  std::vector<token_range> all;
  std::int64_t const batch = given.q->shape[0], tokens = given.q->shape[1];
  if (!given.cu_seqlens) {
    for (std::int64_t n = 0; n < batch; ++n) all.push_back({n * tokens, (n + 1) * tokens});
  } else {
    auto const& ends = given.cu_seqlens->values;
    for (std::size_t n = 1; n < ends.size(); ++n) all.push_back({ends[n - 1], ends[n]});
  }
  return all;
}

/// Largest over smallest of some positive numbers; infinite where they are not.
inline double ratio(double largest, double smallest) {
  return smallest > 0 ? largest / smallest : std::numeric_limits<double>::infinity();
}

/// A step so that at most `affordable` of `count` things are looked at.
inline std::int64_t step_for(std::int64_t count, double affordable) {
  return (std::max)(std::int64_t{1}, static_cast<std::int64_t>(std::ceil(static_cast<double>(count) / affordable)));
}

inline constexpr double affordable_work = 1e10;  // multiplications: some seconds

/// max cond Λ_t over one head of one sequence; a token in `step`, counted from the last, is looked at.
inline double precision_condition(head_reader const& x, std::size_t sequence, token_range where, std::int64_t step) {
  Eigen::Index const K = x.keys;
  Eigen::MatrixXd J = Eigen::MatrixXd::Zero(K, K);
  Eigen::VectorXd prior(K);
  for (Eigen::Index i = 0; i < K; ++i) prior(i) = x.prior(i);
  if (x.given.initial_evidence) {
    std::int64_t const place = (static_cast<std::int64_t>(sequence) * x.value_heads + x.head) * K * K;
    J = Eigen::Map<Eigen::MatrixXd const>(x.given.initial_evidence->values.data() + place, K, K);
  }
  double worst = 0;
  for (std::int64_t t = where.first; t < where.last; ++t) {
    J = std::exp(x.log_decay(t, 0)) * J + x.beta(t) * x.key(t) * x.key(t).transpose();
    if ((where.last - 1 - t) % step != 0) continue;
    Eigen::MatrixXd const precision = J + Eigen::MatrixXd(prior.asDiagonal());
    if (!precision.allFinite()) continue;
    Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> const solver(precision, Eigen::EigenvaluesOnly);
    worst = (std::max)(worst, ratio(solver.eigenvalues()(K - 1), solver.eigenvalues()(0)));
  }
  return worst;
}

/// cond(I + L) of tokens [first, last) of one head.
inline double triangle_condition(head_reader const& x, token_range where, bool exact_gain) {
  Eigen::Index const n = where.last - where.first, K = x.keys;
  Eigen::MatrixXd system = Eigen::MatrixXd::Identity(n, n);
  std::vector<double> gain;
  for (std::int64_t t = where.first; t < where.last; ++t) {
    gain.push_back(exact_gain ? x.beta(t) / (1 + x.beta(t) * x.key(t).squaredNorm()) : x.beta(t));
  }
  for (Eigen::Index j = 0; j < n; ++j) {
    Eigen::VectorXd decayed = x.key(where.first + j);  // k_j α_{j+1} ... α_i
    for (Eigen::Index i = j + 1; i < n; ++i) {
      for (Eigen::Index c = 0; c < K; ++c) decayed(c) *= std::exp(x.log_decay(where.first + i, c));
      system(i, j) = gain[static_cast<std::size_t>(i)] * x.key(where.first + i).dot(decayed);
    }
  }
  if (!system.allFinite()) return 0;
  Eigen::VectorXd const singular = Eigen::BDCSVD<Eigen::MatrixXd>(system).singularValues();
  return ratio(singular(0), singular(n - 1));
}

}  // namespace detail

/// The largest condition of diag(prior) + J over tokens, heads and sequences of a MesaNet case; 0 without tokens.
inline double precision_condition(case_file const& given) {
  auto const sequences = detail::sequences_of(given);
  std::int64_t const heads = given.v->shape[2], K = given.q->shape[3];
  std::int64_t const count = given.q->shape[0] * given.q->shape[1] * heads;
  auto const cost = 2.0 * static_cast<double>(K * K * K);
  std::int64_t const step = detail::step_for(count, detail::affordable_work / cost);
  double worst = 0;
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    for (std::int64_t h = 0; h < heads; ++h) {
      worst = (std::max)(worst, detail::precision_condition({given, h}, n, sequences[n], step));
    }
  }
  return worst;
}

/// The largest condition of a chunk's unit-triangular system over chunks, heads and sequences of a DeltaNet case; 0
/// without tokens. @param chunk tokens a chunk, counted from the start of a sequence, >= 1
inline double triangle_condition(case_file const& given, bool exact_gain, std::int64_t chunk) {
  auto const sequences = detail::sequences_of(given);
  std::int64_t const heads = given.v->shape[2], tokens = given.q->shape[0] * given.q->shape[1];
  std::int64_t const length = (std::max)(std::int64_t{1}, (std::min)(chunk, tokens));
  auto const size = static_cast<double>(length);
  auto const cost = size * size * (8 * size + 20.0 * static_cast<double>(given.q->shape[3]));
  std::int64_t const chunks = tokens / length + static_cast<std::int64_t>(sequences.size());
  std::int64_t const step = detail::step_for(chunks * heads, detail::affordable_work / cost);
  double worst = 0;
  for (auto const& sequence : sequences) {
    std::int64_t const last = (sequence.last - sequence.first - 1) / length;
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t c = last % step; sequence.first + c * length < sequence.last; c += step) {
        std::int64_t const first = sequence.first + c * length;
        detail::token_range const where{first, (std::min)(first + length, sequence.last)};
        worst = (std::max)(worst, detail::triangle_condition({given, h}, where, exact_gain));
      }
    }
  }
  return worst;
}

}  // namespace palimpsa::io
