// Gradients against differences of the library's own scan, for named rules and for policies a user might write; and a slope that is
// wrong is seen.

#include <vector>

#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/numerical_gradient.hpp"
#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace palimpsa;
using palimpsa_test::dice;
using palimpsa_test::numbers;

namespace {

/// s = 1/(1 + (own + all)/2): looks at the cell and at the row.
struct halfway_gain {
  static constexpr bool sees_all = true;
  template <class Lanes, class T>
  static T at(Lanes lanes, T own, T all) {
    return lanes.reciprocal(1 + 0.5 * (own + all));
  }
  template <class Lanes, class T>
  static slopes<T> slope(Lanes lanes, T own, T all) {
    T const s = at(lanes, own, all), d = -0.5 * (s * s);
    return {d, d};
  }
};

/// c = own + own · all / 4: no sum, no product is linear in both.
struct curved_evidence {
  static constexpr bool sees_all = true;
  template <class T>
  static T seen(T own, T all) {
    return own + 0.25 * (own * all);
  }
  template <class T>
  static slopes<T> slope(T own, T all) {
    return {1 + 0.25 * all, 0.25 * own};
  }
};

/// α = 1 - (1 - e^g)/2 ≥ ½: a gate that never forgets more than half.
struct half_gate {
  static constexpr gate_scope scope = gate_scope::head;
  template <class S>
  static S retain(S log_decay) {
    using std::exp;
    return S(0.5) * (1 + exp(log_decay));
  }
  template <class S>
  static S slope(S, S alpha) {
    return alpha - S(0.5);
  }
};

/// u = β² v.
struct squared_weighting {
  template <class T>
  static T write(T beta, T v) {
    return beta * beta * v;
  }
  template <class T>
  static T slope_v(T beta, T) {
    return beta * beta;
  }
  template <class T>
  static T slope_beta(T beta, T v) {
    return 2 * (beta * v);
  }
};

/// The gain with the sign of one slope lost.
struct wrong_gain : halfway_gain {
  template <class Lanes, class T>
  static slopes<T> slope(Lanes lanes, T own, T all) {
    auto const right = halfway_gain::slope(lanes, own, all);
    return {-right.own, right.all};
  }
};

/// The gate with the slope of another gate.
struct wrong_gate : half_gate {
  template <class S>
  static S slope(S, S alpha) {
    return alpha;
  }
};

/// A small call with everything a rule has.
template <class Rule>
struct small_call {
  static constexpr std::int64_t T = 6, HK = 1, HV = 2, K = 3, V = 2;
  numbers q, k, v, beta, gate, prior, eta, J, d_out, d_variance, d_eta, d_J;
  scan_inputs<double> in;
  scan_cotangents<double> up;

  explicit small_call(std::uint64_t seed) {
    dice d(palimpsa_test::seed_of(seed));
    constexpr std::int64_t rows = Rule::keeps_full ? K : V;
    q = d.normals(T * HK * K), k = d.normals(T * HK * K), v = d.normals(T * HV * V), beta = d.uniforms(T * HV, 0.1, 0.6);
    gate = d.uniforms(T * HV, -2, 0), prior = d.uniforms(HV, 0.5, 2), eta = d.normals(HV * V * K);
    J.resize(static_cast<std::size_t>(HV * rows * K));
    for (std::int64_t h = 0; h < HV; ++h)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < K; ++j)
          J[static_cast<std::size_t>((h * rows + i) * K + j)] = Rule::keeps_full && i != j ? 0.1 : d.uniform(0.3, 1);
    gate[3] = 0, gate[5] = -1e-4, gate[6] = -std::numeric_limits<double>::infinity();
    d_out = d.normals(T * HV * V), d_variance = d.normals(T * HV * V), d_eta = d.normals(HV * V * K);
    d_J = d.normals(static_cast<std::int64_t>(J.size()));
    in.q = {q.data(), {1, T, HK, K}}, in.k = {k.data(), {1, T, HK, K}}, in.v = {v.data(), {1, T, HV, V}};
    in.beta = {beta.data(), {1, T, HV}}, in.log_decay = {gate.data(), {1, T, HV}}, in.initial_eta = {eta.data(), {1, HV, V, K}};
    up.grad_out = {d_out.data(), {1, T, HV, V}}, up.grad_final_eta = {d_eta.data(), {1, HV, V, K}};
    if (!Rule::keeps_precision) return;
    in.prior = {prior.data(), {HV}}, in.initial_evidence = {J.data(), {1, HV, rows, K}};
    up.grad_final_evidence = {d_J.data(), {1, HV, rows, K}};
    if (Rule::keeps_diagonal) up.grad_out_variance = {d_variance.data(), {1, T, HV, V}};
  }
};

/// Differences of fourth order with h = 1e-3 are right to h⁴ f⁽⁵⁾/30 ≈ 1e-12 · f⁽⁵⁾ and ε f/h ≈ 1e-12 · f.
constexpr double differences_bound = 1e-9;

template <class Rule>
double worst(std::uint64_t seed) {
  small_call<Rule> const c(seed);
  return worst_gradient_error<Rule>(c.in, c.up);
}

}  // namespace

TEST_CASE("Named rules have the gradients that differences show", "[backward]") {
  for (std::uint64_t seed : {60000u, 60001u}) {
    INFO("seed " << palimpsa_test::seed_of(seed));
    CHECK(worst<Palimpsa>(seed) < differences_bound);
    CHECK(worst<GatedDeltaNet>(seed) < differences_bound);
    CHECK(worst<DiagonalKalman>(seed) < differences_bound);
    CHECK(worst<MesaNet>(seed) < differences_bound);
  }
}

TEST_CASE("A user's own policies have the gradients that differences show", "[backward]") {
  using free = rule<memory::nothing, curved_evidence, halfway_gain, half_gate, squared_weighting>;
  using kept = rule<memory::diagonal, curved_evidence, halfway_gain, half_gate, squared_weighting>;
  for (std::uint64_t seed : {61000u, 61001u}) {
    INFO("seed " << palimpsa_test::seed_of(seed));
    CHECK(worst<free>(seed) < differences_bound);
    CHECK(worst<kept>(seed) < differences_bound);
  }
}

TEST_CASE("A wrong slope is seen in the tensor it reaches", "[backward]") {
  using wrong = rule<memory::diagonal, evidence::diagonal, wrong_gain>;
  small_call<wrong> const c(62000);
  CHECK(compare_gradient<wrong>(c.in, c.up, scan_tensor::k).worst > 1e-3);
  CHECK(compare_gradient<wrong>(c.in, c.up, scan_tensor::v).worst < differences_bound);  // linear in v: no slope of the gain
  using late = rule<memory::nothing, evidence::nothing, gain::plain, wrong_gate>;
  small_call<late> const d(62001);
  auto const found = compare_gradient<late>(d.in, d.up, scan_tensor::log_decay);
  CHECK(found.worst > 1e-2);
  CHECK(found.analytic != found.numerical);
  CHECK(compare_gradient<late>(d.in, d.up, scan_tensor::q).worst < differences_bound);
}

TEST_CASE("A tensor that is absent cannot be varied", "[backward]") {
  small_call<Palimpsa> c(63000);
  c.in.beta = {};
  CHECK_THROWS_AS(numerical_gradient<Palimpsa>(c.in, c.up, scan_tensor::beta), argument_error);
  CHECK(worst_gradient_error<Palimpsa>(c.in, c.up) < differences_bound);
}
