#pragma once
// Constant slow gates over long memories: right values token by token in long double, whose 64 bits leave 65,536 roundings of them far
// below one of a float.

#include "edge/engine.hpp"
#include "edge/quad_oracle.hpp"
#include "support/compare.hpp"

namespace palimpsa_test {

/// T tokens of unit keys under one gate.
inline edge_problem draw_slow(axes r, std::int64_t T, double log_decay, std::uint64_t n) {
  dice d(seed_of(n));
  edge_problem p;
  p.T = T, p.K = 4, p.V = 2;
  p.q = d.normals(T * p.K), p.k = d.normals(T * p.K), p.v = d.normals(T * p.V), p.beta = d.uniforms(T, 0, 1);
  for (std::int64_t t = 0; t < T; ++t) {
    double* const key = p.k.data() + t * p.K;
    double const norm = std::sqrt(key[0] * key[0] + key[1] * key[1] + key[2] * key[2] + key[3] * key[3]);
    for (std::int64_t j = 0; j < p.K; ++j) key[j] /= norm;
  }
  std::int64_t const gates_given = r.forget == gates::none ? 0 : r.forget == gates::constant ? 1 : r.forget == gates::head ? T : T * p.K;
  p.log_decay.assign(static_cast<std::size_t>(gates_given), log_decay);
  p.eta.assign(static_cast<std::size_t>(p.V * p.K), 0);
  if (r.memory != keeps::nothing) p.prior = {1};
  if (r.memory != keeps::nothing) p.J.assign(static_cast<std::size_t>((r.memory == keeps::full ? p.K : p.V) * p.K), 0);
  return as_floats(p);
}

/// out and final_eta.
inline std::pair<numbers, numbers> long_answers(axes r, edge_problem const& p) {
  using wide = long double;
  auto const widened = [](numbers const& x) { return std::vector<wide>(x.begin(), x.end()); };
  oracle_inputs<wide> x{widened(p.q), widened(p.k), widened(p.v), widened(p.beta), {}, widened(p.prior), widened(p.eta), widened(p.J)};
  wide const alpha = p.log_decay.empty() ? 1 : static_cast<wide>(quad_exp(p.log_decay[0]));
  x.alpha.assign(static_cast<std::size_t>(p.T * (r.forget == gates::key ? p.K : 1)), alpha);
  auto const [out, variance] = oracle_scan(r, p, x, [](wide y, auto...) { return y; });
  return {numbers(out.begin(), out.end()), numbers(x.eta.begin(), x.eta.end())};
}

/// Tokens that a memory under this gate is made of.
inline double memory_length(std::int64_t T, double log_decay) { return (std::min)(static_cast<double>(T), -1 / log_decay); }

}  // namespace palimpsa_test
