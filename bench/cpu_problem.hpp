#pragma once
/// @file
/// One problem to time: random inputs of B1 H4, K = V, their outputs and gradients, and the right output in double.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "palimpsa/palimpsa.hpp"
#include "palimpsa/scan_backward.hpp"

namespace bench {

/// What distinguishes two problems.
struct sizes {
  std::int64_t tokens;                      ///< T
  std::int64_t keys;                        ///< K = V
  double gate;                              ///< mean log_decay, < 0
  static constexpr std::int64_t heads = 4;  ///< HK = HV

  /// Cells of all heads, times tokens.
  double element_steps() const { return static_cast<double>(tokens * heads * keys * keys); }
  /// An order, for a map.
  friend bool operator<(sizes a, sizes b) {
    return std::make_pair(std::make_pair(a.tokens, a.keys), a.gate) <
           std::make_pair(std::make_pair(b.tokens, b.keys), b.gate);
  }
};

/// Inputs that never are zeros: q, v normal, keys of length about one, β in (0.1, 1), log_decay within half of its
/// mean, prior 1.5.
template <class Scalar> struct problem {
  explicit problem(sizes given) : size(given) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> uniform(0.1F, 1.0F), around(0.5F, 1.5F);
    auto const fill = [](std::vector<Scalar>& x, std::int64_t n, auto draw) {
      x.resize(static_cast<std::size_t>(n));
      for (Scalar& one : x) one = static_cast<Scalar>(draw());
    };
    std::int64_t const gates = size.tokens * sizes::heads, n = gates * size.keys;
    float const key_length = 1 / std::sqrt(static_cast<float>(size.keys)), gate = static_cast<float>(size.gate);
    fill(q, n, [&] { return normal(random); });
    fill(k, n, [&] { return normal(random) * key_length; });
    fill(v, n, [&] { return normal(random); });
    fill(beta, gates, [&] { return uniform(random); });
    fill(log_decay, gates, [&] { return gate * around(random); });
    fill(prior, sizes::heads, [] { return 1.5F; });
    fill(grad_out, n, [&] { return normal(random); });
    out.assign(q.size(), std::numeric_limits<Scalar>::quiet_NaN());
  }

  /// What `scan` reads under a rule.
  template <class Rule> palimpsa::scan_inputs<Scalar> inputs() const {
    std::int64_t const T = size.tokens, H = sizes::heads, K = size.keys;
    palimpsa::scan_inputs<Scalar> in;
    in.q = {q.data(), {1, T, H, K}};
    in.k = {k.data(), {1, T, H, K}};
    in.v = {v.data(), {1, T, H, K}};
    in.beta = {beta.data(), {1, T, H}};
    in.log_decay = {log_decay.data(), {1, T, H}};
    if constexpr (Rule::keeps_precision) in.prior = {prior.data(), {H}};
    return in;
  }

  /// What `scan` writes: poisoned until it does.
  palimpsa::scan_outputs<Scalar> outputs() {
    palimpsa::scan_outputs<Scalar> to;
    to.out = {out.data(), {1, size.tokens, sizes::heads, size.keys}};
    return to;
  }

  sizes size;                                                     ///< T, K, mean gate
  std::vector<Scalar> q, k, v, beta, log_decay, prior, grad_out;  ///< inputs
  std::vector<Scalar> out;                                        ///< output
};

/// The output of a rule's sequential scan in double, calculated once a problem.
template <class Rule> std::vector<double> const& right_output(sizes size) {
  static std::map<sizes, std::vector<double>> known;
  auto const found = known.find(size);
  if (found != known.end()) return found->second;
  problem<double> p(size);
  palimpsa::scan<Rule>(palimpsa::sequential{1}, p.template inputs<Rule>(), p.outputs(), palimpsa::allocate);
  return known[size] = std::move(p.out);
}

/// ‖x - right‖ / ‖right‖; NaN where anything was left unwritten.
inline double relative_error(std::vector<float> const& x, std::vector<double> const& right) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += (x[i] - right[i]) * (x[i] - right[i]);
    norm += right[i] * right[i];
  }
  return std::sqrt(difference / norm);
}

/// The contract's bound for float32: 5e-7·√T, at most 1e-5.
inline double error_bound(sizes size) { return (std::min)(1e-5, 5e-7 * std::sqrt(static_cast<double>(size.tokens))); }

/// Gradients of everything that a rule reads.
struct gradients {
  explicit gradients(problem<float> const& p) {
    auto const poison = [](std::vector<float>& x, std::size_t n) {
      x.assign(n, std::numeric_limits<float>::quiet_NaN());
    };
    poison(q, p.q.size()), poison(k, p.k.size()), poison(v, p.v.size());
    poison(beta, p.beta.size()), poison(log_decay, p.log_decay.size()), poison(prior, p.prior.size());
  }

  /// Whether all of it was written. That it is right is for the tests to say.
  template <class Rule> bool written() const {
    auto const finite = [](std::vector<float> const& x) {
      return std::all_of(x.begin(), x.end(), [](float one) { return std::isfinite(one); });
    };
    return finite(q) && finite(k) && finite(v) && finite(beta) && finite(log_decay) &&
           (!Rule::keeps_precision || finite(prior));
  }

  /// What `scan_backward` writes under a rule.
  template <class Rule> palimpsa::scan_gradients<float> outputs(sizes size) {
    std::int64_t const T = size.tokens, H = sizes::heads, K = size.keys;
    palimpsa::scan_gradients<float> to;
    to.grad_q = {q.data(), {1, T, H, K}};
    to.grad_k = {k.data(), {1, T, H, K}};
    to.grad_v = {v.data(), {1, T, H, K}};
    to.grad_beta = {beta.data(), {1, T, H}};
    to.grad_log_decay = {log_decay.data(), {1, T, H}};
    if constexpr (Rule::keeps_precision) to.grad_prior = {prior.data(), {H}};
    return to;
  }

  std::vector<float> q, k, v, beta, log_decay, prior;  ///< one a tensor
};

}  // namespace bench
