// Natural parameters to mean and importance and back.

#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/state.hpp"
#include "support/call.hpp"

using namespace palimpsa_test;
using palimpsa::moment_state;
using palimpsa::natural_state;

namespace {

struct sizes {
  std::int64_t N = 3, HV = 2, V = 5, K = 7;
};

/// A state of each kind of memory, with its prior, in one arrangement.
template <class Rule, class S> struct belief {
  static constexpr kind write = Rule::keeps_full       ? kind::mesa_net
                                : Rule::keeps_diagonal ? kind::palimpsa
                                                       : kind::mamba2;
  sizes s;
  problem p;
  tensor<S> eta, evidence, prior, mean, importance;
  std::vector<std::byte> scratch;

  belief(sizes how_big, bool prior_per_key, std::uint64_t n, arrangement how) : s(how_big) {
    recipe r;
    r.B = s.N, r.T = 0, r.HK = 1, r.HV = s.HV, r.K = s.K, r.V = s.V, r.prior_per_key = prior_per_key;
    p = draw({write}, r, n);
    extents const e{s.N, s.HV, s.V, s.K}, j{s.N, s.HV, p.evidence_rows(), s.K};
    eta = {e, how, p.initial_eta};
    mean = {e, how};
    if (Rule::keeps_precision) {
      evidence = {j, how, p.initial_evidence}, importance = {j, how};
      prior = {prior_per_key ? extents{s.HV, s.K} : extents{s.HV}, how, p.prior};
    }
    scratch = scratch_of(palimpsa::to_moments_workspace<Rule>(eta.view()));
  }

  natural_state<S> natural() const { return {eta, evidence}; }
  moment_state<S> moments() const { return {mean, importance}; }
  void forth(moment_state<S> to) {
    palimpsa::to_moments<Rule>({eta, evidence}, prior, to, palimpsa::workspace(scratch));
  }
  void forth() { forth(moments()); }
};

double prior_of(problem const& p, std::int64_t h, std::int64_t j) {
  return p
      .prior[static_cast<std::size_t>(p.prior.size() > static_cast<std::size_t>(p.sizes.HV) ? h * p.sizes.K + j : h)];
}

/// I by its definition.
numbers importance_of(problem const& p) {
  numbers I = p.initial_evidence;
  std::int64_t const rows = p.evidence_rows(), K = p.sizes.K;
  for (std::int64_t c = 0; c < static_cast<std::int64_t>(I.size()); ++c) {
    std::int64_t const j = c % K, i = c / K % rows, h = c / (K * rows) % p.sizes.HV;
    if (p.rule.keeps_diagonal() || i == j) I[static_cast<std::size_t>(c)] += prior_of(p, h, j);
  }
  return I;
}

/// μ I, which must be η.
numbers weighted_mean(problem const& p, numbers const& mean) {
  std::int64_t const V = p.sizes.V, K = p.sizes.K;
  numbers const I = importance_of(p);
  numbers eta(mean.size());
  for (std::int64_t c = 0; c < static_cast<std::int64_t>(eta.size()); ++c) {
    std::int64_t const j = c % K, row = c / K, head = row / V;
    double& x = eta[static_cast<std::size_t>(c)];
    if (!p.rule.keeps_precision()) x = mean[static_cast<std::size_t>(c)];
    if (p.rule.keeps_diagonal()) x = mean[static_cast<std::size_t>(c)] * I[static_cast<std::size_t>(c)];
    for (std::int64_t l = 0; p.rule.keeps_full() && l < K; ++l)
      x += mean[static_cast<std::size_t>(row * K + l)] * I[static_cast<std::size_t>((head * K + l) * K + j)];
  }
  return eta;
}

template <class Rule, class S> void check_both_ways(sizes s, bool prior_per_key, std::uint64_t n) {
  double const bound = 60 * static_cast<double>(std::numeric_limits<S>::epsilon());  // condition of a few
  for (arrangement how : every_arrangement) {
    belief<Rule, S> b(s, prior_per_key, n, how);
    INFO(b.p << ", " << how);
    b.forth();
    PALIMPSA_TEST_CLOSE("mean", weighted_mean(b.p, b.mean.values()), b.p.initial_eta, bound);
    if (Rule::keeps_precision) PALIMPSA_TEST_CLOSE("importance", b.importance.values(), importance_of(b.p), bound);
    CHECK((b.mean.gaps_untouched() && b.importance.gaps_untouched()));

    belief<Rule, S> back(s, prior_per_key, n, how);
    back.eta.poison(), back.evidence.poison();
    palimpsa::to_natural<Rule>({b.mean, b.importance}, b.prior, back.natural());
    PALIMPSA_TEST_CLOSE("eta", back.eta.values(), b.p.initial_eta, bound);
    PALIMPSA_TEST_CLOSE("evidence", back.evidence.values(), b.p.initial_evidence, bound);
    CHECK((back.eta.gaps_untouched() && back.evidence.gaps_untouched()));

    belief<Rule, S> in_place(s, prior_per_key, n, how);
    in_place.forth({in_place.eta, in_place.evidence});
    CHECK(in_place.eta.bits() == b.mean.bits());
    CHECK(in_place.evidence.bits() == b.importance.bits());
    palimpsa::to_natural<Rule>({in_place.eta, in_place.evidence}, in_place.prior, in_place.natural());
    CHECK(in_place.eta.bits() == back.eta.bits());
    CHECK(in_place.evidence.bits() == back.evidence.bits());
  }
}

template <class F> std::string message_of(F f) {
  try {
    f();
  } catch (palimpsa::argument_error const& e) {
    return e.what();
  }
  return "no exception";
}

}  // namespace

TEST_CASE("States convert both ways, also in place") {
  check_both_ways<palimpsa::Palimpsa, double>({}, false, 1);
  check_both_ways<palimpsa::Palimpsa, float>({1, 1, 33, 16}, false, 2);
  check_both_ways<palimpsa::MesaNet, double>({}, true, 3);
  check_both_ways<palimpsa::MesaNet, float>({2, 3, 4, 9}, false, 4);
  check_both_ways<palimpsa::GatedDeltaNet, double>({}, false, 5);
  check_both_ways<palimpsa::GatedDeltaNet, float>({2, 1, 1, 256}, false, 6);
}

TEST_CASE("States of no sequences convert") { check_both_ways<palimpsa::MesaNet, double>({0, 2, 3, 4}, false, 7); }

TEST_CASE("An empty memory has mean 0 and the prior's importance") {
  belief<palimpsa::Palimpsa, double> b({1, 2, 3, 4}, false, 8, arrangement::contiguous);
  for (numbers* x : {&b.p.initial_eta, &b.p.initial_evidence})
    for (double& y : *x) y = 0;
  b.eta = {{1, 2, 3, 4}, arrangement::contiguous, b.p.initial_eta};
  b.evidence = {{1, 2, 3, 4}, arrangement::contiguous, b.p.initial_evidence};
  b.forth();
  CHECK(b.mean.values() == numbers(24, 0));
  for (std::int64_t h = 0; h < 2; ++h) CHECK(b.importance.view()(0, h, 1, 2) == b.p.prior[static_cast<std::size_t>(h)]);
}

TEST_CASE("A conversion says what is wrong and writes nothing") {
  using Full = belief<palimpsa::MesaNet, double>;
  using Diagonal = belief<palimpsa::Palimpsa, double>;
  using None = belief<palimpsa::GatedDeltaNet, double>;
  sizes const s{1, 2, 3, 4};
  auto const plain = arrangement::contiguous;

  Diagonal d(s, false, 9, plain);
  auto const untouched = [](auto const& b) { return b.mean.still_poisoned() && b.importance.still_poisoned(); };
  auto const moments = [&](natural_state<double const> from, palimpsa::view<double const> prior,
                           moment_state<double> to) {
    return message_of([&] { palimpsa::to_moments<palimpsa::Palimpsa>(from, prior, to); });
  };
  CHECK_THAT(moments({{}, d.evidence}, d.prior, d.moments()), contains("eta: expected [N,HV,V,K], given absent"));
  CHECK_THAT(moments({d.eta, {}}, d.prior, d.moments()), contains("evidence: expected [N,HV,V,K], given absent"));
  CHECK_THAT(moments({d.eta, d.evidence}, {}, d.moments()), contains("prior: expected [HV] = [2], given absent"));
  CHECK_THAT(moments({d.eta, d.evidence}, d.prior, {d.mean, {}}),
             contains("importance: expected [N,HV,V,K], given absent"));
  CHECK_THAT(moments({d.eta, d.evidence}, d.prior, {{}, d.importance}),
             contains("mean: expected [N,HV,V,K], given absent"));
  tensor<double> const small({1, 2, 3, 3}, plain);
  CHECK_THAT(moments({d.eta, small}, d.prior, d.moments()),
             contains("evidence: expected [N,HV,V,K] = [1, 2, 3, 4], given [1, 2, 3, 3]"));
  CHECK_THAT(moments({d.eta, d.evidence}, d.prior, {small, d.importance}),
             contains("mean: expected [N,HV,V,K] = [1, 2, 3, 4], given [1, 2, 3, 3]"));
  tensor<double> const negative({2}, plain, {1, -1e-9});
  CHECK_THAT(moments({d.eta, d.evidence}, negative, d.moments()),
             contains("prior[1]: expected a finite, normal precision above 0, given -1e-09"));
  CHECK(untouched(d));

  Full f(s, false, 10, plain);
  f.scratch.pop_back();
  CHECK_THAT(message_of([&] { f.forth(); }),
             contains("workspace: expected at least " + std::to_string(f.scratch.size() + 1) + " bytes, given " +
                      std::to_string(f.scratch.size())));
  CHECK(untouched(f));

  None n(s, false, 11, plain);
  CHECK_THAT(message_of([&] {
               palimpsa::to_moments<palimpsa::GatedDeltaNet>({n.eta, d.evidence}, {}, n.moments());
             }),
             contains("evidence: expected absent, since this rule keeps no precision, given [1, 2, 3, 4]"));
  CHECK(untouched(n));

  Diagonal low(s, false, 12, plain);
  low.forth();
  low.importance.view()(0, 1, 2, 3) = low.p.prior[1] * 0.99;
  low.eta.poison(), low.evidence.poison();
  CHECK_THAT(message_of([&] {
               palimpsa::to_natural<palimpsa::Palimpsa>({low.mean, low.importance}, low.prior, low.natural());
             }),
             contains("importance[0, 1, 2, 3]: expected at least the prior, "));
  Full skew(s, false, 13, plain);
  skew.forth();
  skew.importance.view()(0, 1, 2, 3) += 0.5;
  skew.eta.poison(), skew.evidence.poison();
  CHECK_THAT(message_of([&] {
               palimpsa::to_natural<palimpsa::MesaNet>({skew.mean, skew.importance}, skew.prior, skew.natural());
             }),
             contains("importance[0, 1, 2, 3]: expected a symmetric matrix per head"));
  CHECK((low.eta.still_poisoned() && low.evidence.still_poisoned()));
  CHECK((skew.eta.still_poisoned() && skew.evidence.still_poisoned()));
}
