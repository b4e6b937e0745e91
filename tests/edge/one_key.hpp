#pragma once
// Problems in which one key carries all: K = 1, one-hot keys, and keys of which one entry dominates; βk²/R from 1e-6 to 1e12.

#include "edge/engine.hpp"

namespace palimpsa_test {

/// How long a problem may be: explicit steps (gain::plain, or a gain that sees less than the evidence) diverge for βk² > 2.
inline bool diverges(axes r) {
  bool const corrects = r.evidence != sees::nothing, sees_more = r.gain == moves::elementwise && r.evidence == sees::all;
  return r.memory != keeps::full && ((r.gain == moves::plain && corrects) || sees_more);
}

inline edge_problem draw_one_key(axes r, std::uint64_t n) {
  dice d(seed_of(n));
  edge_problem p;
  bool const longer = n % 8 == 0, wider = n % 8 == 4;
  p.T = longer ? 40 : d.pick(std::vector<std::int64_t>{1, 1, 2, 3, 3});
  p.K = wider ? 33 : d.pick(std::vector<std::int64_t>{1, 1, 2, 3, 8});
  p.V = d.pick(std::vector<std::int64_t>{1, n % 4 == 0 ? 5 : 2});
  bool const full = r.memory == keeps::full, keeps_any = r.memory != keeps::nothing;
  p.beta_per_channel = !full && d.integer(0, 1) == 1;
  p.scale = d.uniform(0.3, 1.5);
  p.prior = keeps_any ? numbers{d.uniform(0.5, 2)} : numbers{};
  double share = d.pick(std::vector<double>{1e-6, 1e-3, 0.1, 1, 10, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12});
  // near βk² = 1 an explicit step leaves each row the difference of two equal numbers, and rows that are summed share it
  if (diverges(r) && (p.T > 1 || share > 1e6 || (share > 0.1 && share < 10))) share = (std::min)(share, 0.1);
  double const by_key = d.pick(std::vector<double>{0, 0.5, 1});  // how much of it the key's size brings
  double const key = std::pow(share, by_key / 2), beta = std::pow(share, 1 - by_key);
  double const others = d.pick(std::vector<double>{0, 0, 1e-3, 1e-5, 1e-7});
  std::int64_t hot = d.integer(0, p.K - 1);
  bool const one_place = d.integer(0, 1) == 1, silent = d.integer(0, 2) == 0;
  for (std::int64_t t = 0; t < p.T; ++t) {
    if (!one_place) hot = d.integer(0, p.K - 1);
    for (std::int64_t j = 0; j < p.K; ++j) {
      double const sign = d.integer(0, 1) == 1 ? 1 : -1;
      p.k.push_back(sign * d.uniform(0.7, 1.3) * (j == hot ? key : others * key));
      p.q.push_back(d.normal());
    }
    for (std::int64_t i = 0; i < p.V; ++i) p.v.push_back(silent ? 0 : d.normal());
    for (std::int64_t i = 0; i < (p.beta_per_channel ? p.V : 1); ++i) p.beta.push_back(beta * d.uniform(0.7, 1.3));
  }
  double const gate = d.pick(std::vector<double>{0, 0, -0.05, -1, -4});
  std::int64_t const gates_given = r.forget == gates::none ? 0 : r.forget == gates::constant ? 1 : r.forget == gates::head ? p.T : p.T * p.K;
  for (std::int64_t i = 0; i < gates_given; ++i) p.log_decay.push_back(gate * d.uniform(0.5, 1));
  bool const known = d.integer(0, 2) > 0;
  for (std::int64_t i = 0; i < p.V * p.K; ++i) {
    p.eta.push_back(known ? 0.7 * d.uniform(0.5, 1.5) : 0);
    if (r.memory == keeps::diagonal) p.J.push_back(known && one_place ? d.uniform(0, 2) : 0);
  }
  if (full)
    for (std::int64_t i = 0; i < p.K * p.K; ++i) p.J.push_back(i % (p.K + 1) == 0 && known ? d.uniform(0, 2) : 0);
  p.d_out = d.normals(p.T * p.V);
  p.d_eta = d.normals(p.V * p.K);
  if (r.memory == keeps::diagonal) p.d_variance = d.normals(p.T * p.V), p.d_J = d.normals(p.V * p.K);
  if (full) {
    p.d_J = d.normals(p.K * p.K);
    for (std::int64_t i = 0; i < p.K; ++i)
      for (std::int64_t j = 0; j < i; ++j) p.d_J[static_cast<std::size_t>(i * p.K + j)] = p.d_J[static_cast<std::size_t>(j * p.K + i)];
  }
  if (d.integer(0, 1) == 1)  // the read alone
    for (numbers* x : {&p.d_eta, &p.d_J, &p.d_variance}) std::fill(x->begin(), x->end(), 0.0);
  return as_floats(p);
}

}  // namespace palimpsa_test
