// Pools, packing and what only the device knows, on the host twin: slots and boundaries of every kind, legal and hostile.

#include "palimpsa/storage_eigen.hpp"
#include "cuda/cases.hpp"
#include "cuda/hostile.hpp"
#include "cuda/pool.hpp"
#include "cuda/twin.hpp"

using namespace palimpsa_test;
namespace found = palimpsa::cuda;

namespace {

palimpsa::scan_shape shape_of(problem const& p) {
  recipe const& s = p.sizes;
  return {s.B, s.T, s.HK, s.HV, s.K, s.V, p.sequences()};
}

template <class Storage>
unsigned run_step(problem const& p, pooled<placed, Storage> const& x) {
  unsigned status = 0;
  run_twin(p.rule, kernel_problem(x.arguments(), shape_of(p), &status));
  return status;
}

template <class Storage>
unsigned run_scan(problem const& p, laid_out<placed, Storage> const& in, written<placed, Storage> const& out) {
  unsigned status = 0;
  run_twin(p.rule, kernel_problem(in.inputs(), out.outputs(), shape_of(p), &status));
  return status;
}

/// A step over four rows.
recipe four_rows(std::int64_t tokens) {
  recipe r;
  r.B = 4, r.T = tokens, r.K = 12, r.V = 11;
  return r;
}

}  // namespace

// Fault seen: a stale slot read and multiplied by zero (NaN); -1 taken as the last slot; slot_in's state written where slot_out says -1.
TEST_CASE("Twin: steps over every kind of slots, in every layout") {
  std::uint64_t n = 1000000;
  for (rule_name rule : every_twin<float>())
    for (std::int64_t tokens : {1, 3})
      for (pool_plan const& plan : pool_plans(tokens)) {
        problem const p = with_shared_states(as_stored<float>(draw(rule, four_rows(tokens), ++n)), plan);
        dice d(p.seed);
        layout const how = d.pick(every_layout), state_how = d.pick(every_layout);
        INFO(p << ", " << plan << ", tensors " << how << ", states " << state_how);
        pooled<placed, float> const x(p, plan, how, state_how, n % 2 == 0 ? index_width::int32 : index_width::int64, n % 3 != 0);
        CHECK(run_step(p, x) == 0);
        check_step(x, p, plan);
      }
}

// Fault seen: a slot compared with the pool's size as int32; a bad slot_out that wrote slot 0.
TEST_CASE("Twin: slots out of range are inert and flagged") {
  std::uint64_t n = 1100000;
  for (rule_name rule : every_twin<float>())
    for (pool_plan const& plan : hostile_plans())
      for (index_width width : {index_width::int32, index_width::int64}) {
        problem const p = as_stored<float>(draw(rule, four_rows(2), ++n));
        INFO(p << ", " << plan);
        pooled<placed, float> const x(p, plan, layout::aligned, layout::aligned, width);
        CHECK(run_step(p, x) == found::bad_slot);
        check_step(x, p, plan);
      }
}

// Fault seen: a falling segment taken with its negative length; the end of the last segment not compared with T.
TEST_CASE("Twin: boundaries that fall or leave the tokens are empty and flagged") {
  std::uint64_t n = 1200000;
  for (rule_name rule : every_twin<float>())
    for (std::vector<std::int64_t> const& boundaries : hostile_boundaries())
      for (index_width width : {index_width::int32, index_width::int64}) {
        problem const p = as_stored<float>(hostile_problem(rule, boundaries, ++n));
        INFO(p);
        laid_out<placed, float> const in(p, layout::aligned, layout::aligned, width);
        written<placed, float> const out(p);
        CHECK(run_scan(p, in, out) == found::bad_segment);
        check_hostile(out, p);
      }
}

// Fault seen: a flag raised by the first key's gate only; a prior flagged by a NaN-blind comparison.
TEST_CASE("Twin: a gate above 0 and a prior not above 0 are flagged, wherever they are") {
  std::uint64_t n = 1300000;
  for (rule_name rule : every_twin<float>())
    for (bool pool : {false, true}) {
      problem p = draw(rule, four_rows(3), ++n);
      unsigned expected = 0;
      if (!p.log_decay.empty()) p.log_decay.back() = 0.25, expected |= found::positive_gate;
      if (!p.prior.empty()) p.prior.back() = n % 2 == 0 ? 0 : std::numeric_limits<double>::quiet_NaN(), expected |= found::bad_prior;
      p = as_stored<float>(p);
      INFO(p << (pool ? ", step" : ", scan"));
      if (pool)
        CHECK(run_step(p, pooled<placed, float>(p, {4, {}, {}})) == expected);
      else
        CHECK(run_scan(p, laid_out<placed, float>(p), written<placed, float>(p)) == expected);
    }
}

// The table of core/test_forbidden_values.cpp as status bits. Against: β flagged by the first row of a tile only; the evidence of
// padding rows flagged; each flag taken out.
TEST_CASE("Twin: every forbidden value sets its bit, whatever the path and the layout") {
  std::uint64_t n = 1350000;
  double const infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  struct fault {
    unsigned bit;
    numbers problem::*where;
    double value;
  };
  std::vector<fault> const faults = {
      {found::positive_gate, &problem::log_decay, 1e-30}, {found::positive_gate, &problem::log_decay, infinity},
      {found::negative_beta, &problem::beta, -1e-30},     {found::negative_beta, &problem::beta, -infinity},
      {found::bad_prior, &problem::prior, 0},             {found::bad_prior, &problem::prior, -1},
      {found::bad_prior, &problem::prior, 1e-40},         {found::bad_prior, &problem::prior, infinity},
      {found::bad_prior, &problem::prior, nan},           {found::negative_evidence, &problem::initial_evidence, -1e-3},
      {found::negative_evidence, &problem::initial_evidence, -infinity},
  };
  for (rule_name rule : every_twin<float>())
    for (fault const& f : faults)
      for (bool pool : {false, true})
        for (beta_shape beta : {beta_shape::head, beta_shape::channel}) {
          recipe r = four_rows(n % 2 == 0 ? 1 : 3);
          r.beta = beta;
          problem p = draw(rule, r, ++n);
          numbers& tensor = p.*f.where;
          if (tensor.empty()) continue;
          tensor.back() = f.value;  // the last row, token, head and channel; of a full J, the end of the diagonal
          p = as_stored<float>(p);
          INFO(p << (pool ? ", step, bit " : ", scan, bit ") << f.bit << ", value " << f.value);
          layout const how = n % 3 == 0 ? layout::aligned : every_layout[n % std::size(every_layout)];
          if (pool)
            CHECK((run_step(p, pooled<placed, float>(p, {4, {}, {}}, layout::aligned, how)) == f.bit));
          else
            CHECK((run_scan(p, laid_out<placed, float>(p, layout::aligned, how), written<placed, float>(p)) == f.bit));
        }
}

// Against: a value of an inert row flagged.
TEST_CASE("Twin: nothing of an inert row is flagged, and a step of no tokens does nothing") {
  std::uint64_t n = 1380000;
  for (rule_name rule : every_twin<float>()) {
    problem p = draw(rule, four_rows(2), ++n);
    pool_plan const inert{4, {-1, -1, -1, -1}, {}};
    for (numbers* x : {&p.log_decay, &p.beta}) std::fill(x->begin(), x->end(), x == &p.beta ? -1.0 : 1.0);
    if (rule.forget == gates::constant) std::fill(p.log_decay.begin(), p.log_decay.end(), -1.0);
    p = as_stored<float>(p);
    INFO(p);
    CHECK(run_step(p, pooled<placed, float>(p, inert)) == 0);

    problem const none = as_stored<float>(draw(rule, four_rows(0), ++n));
    pooled<placed, float> const x(none, {8, {0, 1, 2, 3}, {4, 5, 6, 7}});
    auto const eta = x.eta.bits(), evidence = x.evidence.bits();
    CHECK(run_step(none, x) == 0);
    CHECK((eta == x.eta.bits() && evidence == x.evidence.bits()));
  }
}

// Fault seen: the step's tile given other lanes than the scan's (sums in another order); a state rounded on its way through a pool.
TEST_CASE("Twin: n tokens a call are n calls, a scan, and a scan cut anywhere, bit by bit") {
  std::uint64_t n = 1400000;
  for (rule_name rule : every_twin<float>())
    for (std::int64_t K : {7, 32, 48, 96, 104, 140, 200}) {
      recipe r = four_rows(5);
      r.K = K, r.V = 9;
      problem const p = as_stored<float>(draw(rule, r, ++n));
      INFO(p);
      pool_plan const in_place{4, {}, {}};
      pooled<placed, float> const whole(p, in_place);
      run_step(p, whole);
      written<placed, float> const scanned(p);
      run_scan(p, laid_out<placed, float>(p), scanned);
      CHECK(whole.outputs.out.bits() == scanned.out.bits());
      CHECK(whole.outputs.out_variance.bits() == scanned.out_variance.bits());
      CHECK(whole.eta.bits() == scanned.final_eta.bits());
      CHECK(whole.evidence.bits() == scanned.final_evidence.bits());

      problem state = p;
      for (std::int64_t t = 0; t < r.T; ++t) {
        problem one = tokens_between(p, t, t + 1);
        one.initial_eta = state.initial_eta, one.initial_evidence = state.initial_evidence;
        written<placed, float> const now(one);
        run_scan(one, laid_out<placed, float>(one), now);
        state.initial_eta = now.final_eta.values();
        if (rule.keeps_precision()) state.initial_evidence = now.final_evidence.values();
      }
      CHECK(state.initial_eta == scanned.final_eta.values());
      CHECK(state.initial_evidence == (rule.keeps_precision() ? scanned.final_evidence.values() : numbers{}));
    }
}

// Fault seen: conjugate gradients stopped at a tolerance of 1e-3; the gate applied after the write.
TEST_CASE("Twin: every case file, in every type") {
  std::vector<known_case> const cases = known_cases();
  REQUIRE(cases.size() >= 58);
  int ran = 0;
  auto const check = [&]<class Storage>(Storage, known_case const& c) {
    if (!has_twin<Storage>(c.question.rule)) return;
    problem const p = as_stored<Storage>(c.question);
    INFO(c.name << ": " << p << ", " << palimpsa::storage<Storage>::name);
    right_values right = oracle(p);
    if (sizeof(Storage) == 4) {
      double const condition = right.condition;
      right = c.answer;
      right.condition = condition;
    }
    written<placed, Storage> out(p, layout::aligned, layout::aligned, !right.out_variance.empty());
    if (right.final_eta.empty()) out.final_eta = {};
    if (right.final_evidence.empty()) out.final_evidence = {};
    CHECK(run_scan(p, laid_out<placed, Storage>(p), out) == 0);
    check_scan(out, right, p);
    ++ran;
  };
  for (known_case const& c : cases) {
    check(float{}, c);
    check(Eigen::bfloat16{}, c);
    check(Eigen::half{}, c);
  }
  CHECK(ran >= 80);
}
