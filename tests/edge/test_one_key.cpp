// One key carries all: βk²/R from 1e-6 to 1e12, K = 1, one-hot keys, and keys of which one entry dominates. What a write leaves of the
// old mean is a share of it near 0, or near 1, that no difference of two large numbers may stand for; forward and backward, float and
// double, every point of the family, held to a small multiple of what one rounding of the inputs does, or to the law in laws.hpp.

#include "edge/closeness.hpp"
#include "edge/one_key.hpp"
#include "support/catch.hpp"

using namespace palimpsa_test;

namespace {

/// CHECKs one problem.
void hold(engine const& e, edge_problem const& p, granted what, int& compared, walks how = walks::by_token) {
  right_answers const right = right_answers_of(e.at, p, what);
  if (!in_range(right, 0, 1e30)) return;
  std::string const wrong = beyond(e, how, p, right, compared);
  if (!wrong.empty()) FAIL_CHECK(wrong);
}

/// One token, one cell.
edge_problem one_cell(axes r, double k, double beta, double v, double eta) {
  edge_problem p;
  p.q = {0.5}, p.k = {k}, p.v = {v}, p.beta = {beta}, p.eta = {eta};
  if (r.forget != gates::none) p.log_decay = {0};
  p.d_out = {1}, p.d_eta = {0};
  if (r.memory != keeps::nothing) p.prior = {1}, p.J = {0}, p.d_J = {0};
  if (r.memory == keeps::diagonal) p.d_variance = {0};
  return as_floats(p);
}

/// A state lies in memory, rounded, between two tokens; a full memory solves a system whose matrix was rounded into it.
granted granted_to(axes r, edge_problem const& p) {
  return r.memory == keeps::full || p.T > 1 ? granted::inputs_and_state : granted::inputs;
}

}  // namespace

TEST_CASE("A memory that one token overwrites is left with the share that is due, by large keys and by large betas") {
  int compared = 0;
  for (engine const& e : every_engine())
    for (double v : {0.0, 1.0})
      for (double x : {1e-6, 1e-3, 0.3, 1.0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12}) {
        hold(e, one_cell(e.at, std::sqrt(x), 1, v, 0.7), granted::inputs, compared);
        hold(e, one_cell(e.at, 1, x, v, 0.7), granted::inputs, compared);
      }
  CHECK(compared > 8000);
}

TEST_CASE("A unit key under any beta") {
  int compared = 0;
  for (engine const& e : every_engine())
    for (std::uint64_t n = 1; n <= 20; ++n) {
      dice d(seed_of(5000 + n));
      edge_problem p = one_cell(e.at, 1, std::pow(10, d.uniform(0, 4)), 1, 0.7);
      p.K = 8, p.V = 2, p.q = d.normals(8), p.k = d.normals(8), p.v = d.normals(2), p.eta = d.normals(16);
      p.d_out = d.normals(2), p.d_eta = d.normals(16);
      if (e.at.forget == gates::key) p.log_decay.assign(8, 0);
      if (e.at.memory == keeps::diagonal) p.J = d.uniforms(16, 0, 1), p.d_J = d.normals(16), p.d_variance = d.normals(2);
      if (e.at.memory == keeps::full) p.J.assign(64, 0), p.d_J.assign(64, 0);
      double norm = 0;
      for (double k : p.k) norm += k * k;
      for (double& k : p.k) k /= std::sqrt(norm);
      hold(e, as_floats(p), granted_to(e.at, p), compared);
    }
  CHECK(compared > 5000);
}

TEST_CASE("One key carries all, at random") {
  int compared = 0;
  for (engine const& e : every_engine())
    for (std::uint64_t n = 1; n <= 96; ++n) {
      edge_problem const p = draw_one_key(e.at, n);
      hold(e, p, granted_to(e.at, p), compared);
    }
  CHECK(compared > 25000);
}

TEST_CASE("One key carries all, in chunks") {
  int compared = 0;
  for (engine const& e : engines_in_chunks())
    for (std::uint64_t n = 1; n <= 96; ++n) {
      edge_problem const p = with_beta_per_head(draw_one_key(e.at, n));
      hold(e, p, granted_to(e.at, p), compared, walks::in_chunks);
    }
  CHECK(compared > 2000);
}
