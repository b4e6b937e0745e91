#pragma once
// One head of one sequence, small enough to be worked out in 113 bits: a point of the family by its axes, its inputs, and what is
// asked of the results. Dense and row-major; the numbers are floats, so that float and double have the same right values.

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

#include "support/problem.hpp"

namespace palimpsa_test {

enum class keeps { nothing, diagonal, full };
enum class sees { nothing, own, all };
enum class moves { plain, elementwise, exact };

/// A point of the family.
struct axes {
  keeps memory = keeps::nothing;
  sees evidence = sees::nothing;
  moves gain = moves::plain;
  gates forget = gates::head;
  bool preweighted = false;
};

struct edge_problem {
  std::int64_t T = 1, K = 1, V = 1;
  bool beta_per_channel = false;
  double scale = 1;
  numbers q, k, v, beta, log_decay, prior, eta, J;  ///< log_decay, prior, J by the axes of the rule that runs; eta, J: initial
  numbers d_out, d_variance, d_eta, d_J;            ///< cotangents
};

/// What a rule answers to a problem, forward and backward.
enum class result { out, variance, eta, J, d_q, d_k, d_v, d_beta, d_log_decay, d_prior, d_eta, d_J };
inline constexpr std::size_t result_count = 12;
inline char const* name_of(std::size_t r) {
  constexpr char const* names[] = {"out",    "out_variance", "final_eta",      "final_evidence", "grad_q",           "grad_k",
                                   "grad_v", "grad_beta",    "grad_log_decay", "grad_prior",     "grad_initial_eta", "grad_initial_evidence"};
  return names[r];
}

/// All of them; empty where the rule has none.
template <class X> using answers_of = std::array<std::vector<X>, result_count>;
using answers = answers_of<double>;

template <class A> auto& at(A& a, result r) { return a[static_cast<std::size_t>(r)]; }

/// To the nearest float.
inline numbers as_floats(numbers x) {
  for (double& y : x) y = static_cast<double>(static_cast<float>(y));
  return x;
}
inline edge_problem as_floats(edge_problem p) {
  for (numbers* x : {&p.q, &p.k, &p.v, &p.beta, &p.log_decay, &p.prior, &p.eta, &p.J, &p.d_out, &p.d_variance, &p.d_eta, &p.d_J})
    *x = as_floats(*x);
  p.scale = static_cast<double>(static_cast<float>(p.scale));
  return p;
}

inline std::ostream& operator<<(std::ostream& out, edge_problem const& p) {
  out << "T " << p.T << " K " << p.K << " V " << p.V << (p.beta_per_channel ? " beta per channel" : "") << " scale " << p.scale;
  auto const list = [&](char const* name, numbers const& x) {
    out << "\n  " << name << " {";
    for (std::size_t i = 0; i < x.size() && i < 12; ++i) out << (i ? ", " : "") << x[i];
    out << (x.size() > 12 ? ", ...}" : "}");
  };
  out.precision(9);
  list("q", p.q), list("k", p.k), list("v", p.v), list("beta", p.beta), list("log_decay", p.log_decay), list("prior", p.prior);
  list("eta", p.eta), list("J", p.J), list("d_out", p.d_out), list("d_variance", p.d_variance), list("d_eta", p.d_eta), list("d_J", p.d_J);
  return out;
}

}  // namespace palimpsa_test
