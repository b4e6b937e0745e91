#pragma once
// Problems whose magnitudes lie anywhere in the range that the contract names, though products of them lie outside what a float holds.

#include <algorithm>

#include "edge/engine.hpp"

namespace palimpsa_test {

/// The table of docs/contract.md, "Magnitudes": sizes are powers of ten, drawn evenly between these and their inverses. share: βk²/R ≤.
struct edge_range {
  double key = 18, beta_key2 = 24, prior = 24, share = 12, query = 9, scale = 6, value = 9, cotangent = 6;
};

/// And every result, with what cancels in it, is zero or lies between these.
inline constexpr double smallest_result = 1e-24, largest_result = 1e24;

inline edge_problem draw_range(axes r, std::uint64_t n, edge_range const& range = {}) {
  dice d(seed_of(n));
  auto const ten = [&](double size) { return std::pow(10.0, d.uniform(-size, size)); };
  auto const like = [&](double size) { return size * d.uniform(0.5, 2) * (d.integer(0, 1) == 1 ? 1 : -1); };
  edge_problem p;
  bool const full = r.memory == keeps::full, diagonal = r.memory == keeps::diagonal;
  p.T = d.pick(std::vector<std::int64_t>{1, 1, 2, 4}), p.K = d.integer(1, 3), p.V = d.integer(1, 2);
  p.beta_per_channel = !full && d.integer(0, 1) == 1;
  double const prior = r.memory == keeps::nothing ? 1 : ten(range.prior);
  double const key = ten(range.key), most = (std::min)(range.beta_key2, std::log10(prior) + range.share);
  double const evidence = std::pow(10.0, d.uniform((std::max)(-range.beta_key2, std::log10(prior) - range.share), most));
  double const beta = evidence / (key * key), value = ten(range.value), query = ten(range.query), size = ten(range.cotangent);
  // μ of the size of what is observed, v/k: a state that other tokens of these sizes may have left
  double const mean = (r.preweighted ? value / beta : value) / key, eta = r.memory == keeps::nothing ? mean : mean * (prior + evidence);
  p.scale = ten(range.scale);
  if (r.memory != keeps::nothing) p.prior = {prior};
  for (std::int64_t i = 0; i < p.T * p.K; ++i) p.k.push_back(like(key)), p.q.push_back(like(query));
  for (std::int64_t i = 0; i < p.T * p.V; ++i) p.v.push_back(like(value)), p.d_out.push_back(like(size));
  for (std::int64_t i = 0; i < p.T * (p.beta_per_channel ? p.V : 1); ++i) p.beta.push_back(std::fabs(like(beta)));
  std::int64_t const gates_given = r.forget == gates::none ? 0 : r.forget == gates::constant ? 1 : r.forget == gates::head ? p.T : p.T * p.K;
  for (std::int64_t i = 0; i < gates_given; ++i) p.log_decay.push_back(d.uniform(-1, 0));
  bool const known = d.integer(0, 1) == 1;
  for (std::int64_t i = 0; i < p.V * p.K; ++i) {
    p.eta.push_back(known ? like(eta) : 0), p.d_eta.push_back(0);
    if (diagonal) p.J.push_back(known ? std::fabs(like(evidence)) : 0), p.d_J.push_back(0);
  }
  if (diagonal) p.d_variance.assign(static_cast<std::size_t>(p.T * p.V), 0);
  for (std::int64_t i = 0; i < p.K * p.K && full; ++i)
    p.J.push_back(i % (p.K + 1) == 0 && known ? std::fabs(like(evidence)) : 0), p.d_J.push_back(0);
  return as_floats(p);
}

/// Whether a float holds what the problem brings.
inline bool is_given(edge_problem const& p) {
  for (numbers const* x : {&p.q, &p.k, &p.v, &p.beta, &p.prior, &p.eta, &p.J, &p.d_out})
    for (double y : *x)
      if (y != 0 && !(std::fabs(y) >= 1e-30 && std::fabs(y) <= 1e30)) return false;
  return true;
}

}  // namespace palimpsa_test
