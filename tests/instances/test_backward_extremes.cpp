// Gradients where they are easily lost: gates by band, tiny priors, numbers whose squares leave the range of float, many rows and keys.

#include "instances/backward_call.hpp"

using namespace palimpsa_test;

namespace {

/// |log_decay| in [0,1), [1,4), [4,16), [16,64): what the gate's gradient is held to one by one, since one norm hides small entries.
constexpr double band_edges[] = {0, 1, 4, 16, 64};

/// Gates spread over every band within one sequence, and some that forget everything.
problem banded(rule_name rule, std::uint64_t n) {
  recipe r;
  r.B = 1, r.T = 48, r.HK = 1, r.HV = 1, r.K = 3, r.V = 2, r.repeated_keys = true;
  problem p = draw(rule, r, n);
  dice d(p.seed + 5);
  for (double& g : p.log_decay) {
    int const band = static_cast<int>(d.integer(0, 9));
    if (band < 8) g = -d.uniform(band_edges[band % 4], band_edges[band % 4 + 1]);
    if (band == 8) g = -1000;
    if (band == 9) g = d.integer(0, 1) == 0 ? 0 : -std::numeric_limits<double>::infinity();
  }
  return p;
}

template <class Storage>
void check_bands(rule_name rule, std::uint64_t n) {
  problem const p = rounded<Storage>(banded(rule, n));
  cotangent_values const up = draw_cotangents(p);
  INFO(p);
  numbers const right = right_gradient(p, up, dual_of(p), &dual_inputs::log_decay);
  numbers const found = backward_call<Storage>(p, up).run({16, 1}).log_decay.values();
  double const bound = arithmetic_bound<typename palimpsa::storage<Storage>::scalar>(p.longest(), condition_of(p));
  for (int band = 0; band < 4; ++band) {
    numbers x, y;
    for (std::size_t i = 0; i < right.size(); ++i) {
      double const size = -p.log_decay[i];
      if (size < band_edges[band] || size >= band_edges[band + 1]) continue;
      x.push_back(found[i]);
      y.push_back(right[i]);
    }
    INFO("gates with |log_decay| in [" << band_edges[band] << ", " << band_edges[band + 1] << ")");
    CHECK(x.size() >= 3);
    PALIMPSA_TEST_CLOSE("grad_log_decay", x, y, bound);
  }
  for (std::size_t i = 0; i < right.size(); ++i)
    if (p.log_decay[i] < -64) CHECK(std::fabs(found[i]) <= 1e-25);
}

/// Whole gradients at sizes that fit the oracle.
template <class Storage>
void check_sizes(rule_name rule, double key_size, double prior_size, std::uint64_t n) {
  recipe r;
  r.B = 1, r.T = 8, r.HK = 1, r.HV = 2, r.K = 4, r.V = 3, r.key_size = key_size, r.prior_size = prior_size;
  problem const p = rounded<Storage>(draw(rule, r, n));
  cotangent_values up = draw_cotangents(p);
  for (double& x : up.final_eta) x = static_cast<double>(static_cast<float>(x / key_size));
  for (double& x : up.final_evidence) x = static_cast<double>(static_cast<float>(x / (key_size * key_size)));
  if (rule.keeps_diagonal())
    for (double& x : up.out_variance) x = static_cast<double>(static_cast<float>(x * key_size));  // as large as the mean's share
  INFO(p);
  INFO("keys of " << key_size << ", priors of " << prior_size);
  check_right(backward_call<Storage>(p, up).run(), right_gradients(p, up), p);
}

/// Σ gradient · direction is the derivative along the direction: one run of the oracle for a whole tensor.
void check_directions(rule_name rule, recipe const& r, std::uint64_t n) {
  problem const p = draw(rule, r, n);
  cotangent_values const up = draw_cotangents(p);
  INFO(p);
  gradient_values const g = backward_call<double>(p, up).run({16, 1}).values();
  dual_inputs const in = dual_of(p);
  dice d(p.seed + 9);
  double const bound = arithmetic_bound<double>(p.longest(), condition_of(p));
  auto const check = [&](char const* name, numbers const& gradient, dual_inputs::tensor dual_inputs::*which) {
    dual_inputs moved = in;
    REQUIRE((moved.*which).size() == gradient.size());
    double sum = 0, size = 0;
    bool const symmetric = which == &dual_inputs::initial_evidence && rule.keeps_full();
    auto const K = static_cast<std::size_t>(r.K);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      std::size_t const inner = i % (K * K), mirror = i - inner + inner % K * K + inner / K;
      dual& x = (moved.*which)[i];
      x.d = symmetric && mirror < i ? (moved.*which)[mirror].d : static_cast<long double>(d.normal());
      sum += gradient[i] * static_cast<double>(x.d);
      size += std::fabs(gradient[i] * static_cast<double>(x.d));
    }
    double const right = static_cast<double>(detail::loss_of(p, up, moved).d);
    INFO(name << ": " << sum << " along a direction, right " << right);
    CHECK(std::fabs(sum - right) <= bound * size);
  };
  check("q", g.q, &dual_inputs::q);
  check("k", g.k, &dual_inputs::k);
  check("v", g.v, &dual_inputs::v);
  if (!g.beta.empty()) check("beta", g.beta, &dual_inputs::beta);
  if (!g.log_decay.empty()) check("log_decay", g.log_decay, &dual_inputs::log_decay);
  if (!g.prior.empty()) check("prior", g.prior, &dual_inputs::prior);
  check("initial_eta", g.initial_eta, &dual_inputs::initial_eta);
  if (!g.initial_evidence.empty()) check("initial_evidence", g.initial_evidence, &dual_inputs::initial_evidence);
}

}  // namespace

TEST_CASE("The gate's gradient is right in every band of gates", "[backward]") {
  std::uint64_t n = 40000;
  for (rule_name rule : every_backward<float>())
    if (rule.forget == gates::head)
      for (int i = 0; i < 3; ++i) check_bands<float>(rule, ++n);
  for (rule_name rule : every_backward<double>())
    if (rule.forget == gates::head) check_bands<double>(rule, ++n);
}

TEST_CASE("A prior that all but vanishes keeps its gradients", "[backward]") {
  std::uint64_t n = 41000;
  for (kind write : {kind::palimpsa, kind::diagonal_kalman})
    for (double prior : {1e-2, 1e-4, 1e-6, 1e-10, 1e3}) {
      check_sizes<float>({write}, 1, prior, ++n);
      check_sizes<double>({write}, 1, prior, ++n);
    }
  // One channel alone carries the observation: what is left of the state's gradient is far below the terms it is the difference of.
  for (double prior : {1e-2, 1e-4}) {
    recipe r;
    r.B = 1, r.T = 8, r.HK = 1, r.HV = 2, r.K = 1, r.V = 3, r.prior_size = prior;
    problem const p = rounded<float>(draw({kind::diagonal_kalman}, r, ++n));
    cotangent_values const up = draw_cotangents(p);
    INFO(p);
    check_right(backward_call<float>(p, up).run(), right_gradients(p, up), p);
  }
}

TEST_CASE("1/I may be squared beyond the range of float", "[backward]") {
  std::uint64_t n = 42000;
  for (kind write : {kind::palimpsa, kind::diagonal_kalman})
    for (double size : {1e-11, 1e11}) check_sizes<float>({write}, size, size * size, ++n);  // I of 1e±22
}

TEST_CASE("Many rows and keys, none a multiple of a vector", "[backward]") {
  std::uint64_t n = 43000;
  for (rule_name rule : every_backward<double>()) {
    if (rule.preweighted) continue;
    recipe r;
    r.B = 1, r.T = 33, r.HK = 1, r.HV = 2, r.K = 19, r.V = 21;
    check_directions(rule, r, ++n);
    r.lengths = {17, 0, 1, 9}, r.HK = 2, r.HV = 6, r.K = 8, r.V = 35;
    check_directions(rule, r, ++n);
  }
}
