// A gate that forgets at rest, retain(0) = ¾, where log_decay is absent: every path reads retain(0), and none takes α = 1 for it.

#include <vector>

#include "palimpsa/numerical_gradient.hpp"
#include "palimpsa/scan.hpp"
#include "palimpsa/scan_backward.hpp"
#include "palimpsa/scan_chunked.hpp"
#include "palimpsa/step.hpp"
#include "palimpsa/traits.hpp"
#include "support/compare.hpp"

using namespace palimpsa;
using palimpsa_test::numbers;

namespace {

/// α = ¾ e^g.
template <gate_scope Scope>
struct leaky {
  static constexpr gate_scope scope = Scope;
  template <class S>
  static S retain(S log_decay) {
    using std::exp;
    return S(0.75) * exp(log_decay);
  }
  template <class S>
  static S slope(S, S alpha) {
    return alpha;
  }
};

template <gate_scope Scope>
using adding = rule<memory::nothing, evidence::nothing, gain::plain, leaky<Scope>>;
template <gate_scope Scope>
using keeping = rule<memory::diagonal, evidence::diagonal, gain::elementwise, leaky<Scope>>;

constexpr std::int64_t T = 9, K = 3, V = 2;

/// A call without log_decay, and the values of it that a plain loop finds.
template <class Rule>
struct silent_call {
  numbers q, k, v, beta, prior, eta, J, d_out, d_eta, d_J;
  numbers right = {}, right_eta, right_J;
  scan_inputs<double> in;
  scan_cotangents<double> up;

  explicit silent_call(std::uint64_t seed) {
    palimpsa_test::dice d(seed);
    q = d.normals(T * K), k = d.normals(T * K), v = d.normals(T * V), beta = d.uniforms(T, 0.1, 0.9), prior = d.uniforms(1, 0.5, 2);
    eta = d.normals(V * K), J = d.uniforms(V * K, 0.3, 1), d_out = d.normals(T * V), d_eta = d.normals(V * K), d_J = d.normals(V * K);
    in.q = {q.data(), {1, T, 1, K}}, in.k = {k.data(), {1, T, 1, K}}, in.v = {v.data(), {1, T, 1, V}}, in.beta = {beta.data(), {1, T, 1}};
    in.initial_eta = {eta.data(), {1, 1, V, K}};
    up.grad_out = {d_out.data(), {1, T, 1, V}}, up.grad_final_eta = {d_eta.data(), {1, 1, V, K}};
    if (Rule::keeps_precision) {
      in.prior = {prior.data(), {1}}, in.initial_evidence = {J.data(), {1, 1, V, K}};
      up.grad_final_evidence = {d_J.data(), {1, 1, V, K}};
    }
    loop();
  }

  void loop() {
    right_eta = eta, right_J = J;
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t i = 0; i < V; ++i) {
        double read = 0;
        for (std::size_t j = 0; j < K; ++j) {
          double& h = right_eta[i * K + j];
          double& p = right_J[i * K + j];
          h = 0.75 * h + beta[t] * v[t * V + i] * k[t * K + j];
          p = 0.75 * p + beta[t] * k[t * K + j] * k[t * K + j];
          read += h * q[t * K + j] / (Rule::keeps_precision ? prior[0] + p : 1);
        }
        right.push_back(read);
      }
  }
};

/// The reads, η and J of one call.
template <class Rule>
struct answer {
  numbers out = numbers(T * V), eta = numbers(V * K), J = numbers(V * K);
  scan_outputs<double> views() {
    scan_outputs<double> x;
    x.out = {out.data(), {1, T, 1, V}}, x.final_eta = {eta.data(), {1, 1, V, K}};
    if (Rule::keeps_precision) x.final_evidence = {J.data(), {1, 1, V, K}};
    return x;
  }
  void check(silent_call<Rule> const& c) const {
    double const bound = palimpsa_test::arithmetic_bound<double>(T);
    PALIMPSA_TEST_CLOSE("out", out, c.right, bound);
    PALIMPSA_TEST_CLOSE("eta", eta, c.right_eta, bound);
    if (Rule::keeps_precision) PALIMPSA_TEST_CLOSE("evidence", J, c.right_J, bound);
  }
};

template <class Rule>
void check_forward(std::uint64_t seed) {
  INFO("seed " << seed);
  silent_call<Rule> const c(seed);
  {
    INFO("scan");
    answer<Rule> x;
    scan<Rule>(sequential{1}, c.in, x.views(), allocate);
    x.check(c);
  }
  for (std::int64_t chunk : {1, 4, 16}) {
    INFO("chunks of " << chunk);
    answer<Rule> x;
    scan<Rule>(chunked{chunk, 1}, c.in, x.views(), allocate);
    x.check(c);
  }
  INFO("step");
  answer<Rule> x;
  x.eta = c.eta, x.J = c.J;
  auto const views = x.views();
  step_arguments<double> a;
  a.q = c.in.q, a.k = c.in.k, a.v = c.in.v, a.beta = c.in.beta, a.prior = c.in.prior;
  a.eta = views.final_eta, a.evidence = views.final_evidence, a.out = views.out;
  step<Rule>(sequential{1}, a, allocate);
  x.check(c);
}

/// Differences are of the scan, which check_forward holds; 1e-9: see test_gradient_differences.cpp.
template <class Rule>
void check_gradients(std::uint64_t seed) {
  INFO("seed " << seed);
  silent_call<Rule> const c(seed);
  CHECK(worst_gradient_error<Rule>(c.in, c.up) < 1e-9);
}

}  // namespace

// Planted, each in turn: α = 1 for an absent log_decay in sequential.hpp, chunked_tokens.hpp, backward_chunk.hpp.
TEST_CASE("A gate that forgets at rest forgets where log_decay is absent, whatever its scope") {
  static_assert(chunked_form<adding<gate_scope::head>> == chunk_form::products);
  static_assert(chunked_form<keeping<gate_scope::head>> == chunk_form::divided_read);
  check_forward<adding<gate_scope::none>>(70000);
  check_forward<adding<gate_scope::constant>>(70001);
  check_forward<adding<gate_scope::head>>(70002);
  check_forward<adding<gate_scope::key>>(70003);
  check_forward<keeping<gate_scope::head>>(70004);
}

TEST_CASE("The gradients under a gate that forgets at rest are those that differences show", "[backward]") {
  check_gradients<adding<gate_scope::none>>(70010);
  check_gradients<adding<gate_scope::key>>(70011);
  check_gradients<keeping<gate_scope::head>>(70012);
}
