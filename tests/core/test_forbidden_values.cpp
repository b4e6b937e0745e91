// Every value that the contract forbids, in one table: the call that meets it names the element, and has written nothing. The same
// values stand in rows of a step that are inert, where nobody looks.

#include "core/error_bench.hpp"
#include "palimpsa/validate_values.hpp"

using namespace palimpsa_test;

namespace {

double const infinity = std::numeric_limits<double>::infinity();
double const subnormal = std::numeric_limits<double>::min() / 2;

std::string number(double x) { return palimpsa::detail::number_text(x); }

/// A forbidden value: where it goes, and what the exception says.
struct fault {
  rule_name rule;
  std::function<void(call<double>&)> plant;  // into element [1, 2, 3(, 4)] of what has tokens, of head 1 of what has not
  std::string text;
  bool in_step = true;  // the initial state of a step is a pool's
};

std::vector<fault> faults() {
  rule_name const kalman{kind::diagonal_kalman};
  std::string const gate = "expected a natural logarithm of the gate, at most 0, given ", beta = "expected a precision of at least 0, given ",
                    prior = "expected a finite, normal precision above 0, given ", evidence = "expected evidence of at least 0, given ";
  return {
      {palimpsa_, [](auto& c) { c.log_decay.view()(1, 2, 3) = 0.5; }, "log_decay[1, 2, 3]: " + gate + "0.5"},
      {mamba2, [](auto& c) { c.log_decay.view()(1, 2, 3) = infinity; }, "log_decay[1, 2, 3]: " + gate + "inf"},
      {by_key, [](auto& c) { c.log_decay.view()(1, 2, 3, 4) = 1e-300; }, "log_decay[1, 2, 3, 4]: " + gate + "1e-300"},
      {constant, [](auto& c) { c.log_decay.view()(1) = 1e-9; }, "log_decay[1]: " + gate + "1e-09"},
      {palimpsa_, [](auto& c) { c.beta.view()(1, 2, 3, 4) = -2.4; }, "beta[1, 2, 3, 4]: " + beta + "-2.4"},
      {mamba2, [](auto& c) { c.beta.view()(1, 2, 3, 4) = -subnormal; }, "beta[1, 2, 3, 4]: " + beta + number(-subnormal)},
      {mesa, [](auto& c) { c.beta.view()(1, 2, 3) = -infinity; }, "beta[1, 2, 3]: " + beta + "-inf"},
      {palimpsa_, [](auto& c) { c.prior.view()(1) = 0; }, "prior[1]: " + prior + "0"},
      {palimpsa_, [](auto& c) { c.prior.view()(1) = -1; }, "prior[1]: " + prior + "-1"},
      {kalman, [](auto& c) { c.prior.view()(1) = subnormal; }, "prior[1]: " + prior + number(subnormal)},
      {palimpsa_, [](auto& c) { c.prior.view()(1) = infinity; }, "prior[1]: " + prior + "inf"},
      {mesa, [](auto& c) { c.prior.view()(1) = std::nan(""); }, "prior[1]: " + prior + "nan"},
      {palimpsa_, [](auto& c) { c.initial_evidence.view()(1, 2, 3, 4) = -1e-9; }, "initial_evidence[1, 2, 3, 4]: " + evidence + "-1e-09", false},
      {kalman, [](auto& c) { c.initial_evidence.view()(1, 2, 3, 4) = -infinity; }, "initial_evidence[1, 2, 3, 4]: " + evidence + "-inf", false},
      {mesa, [](auto& c) { c.initial_evidence.view()(1, 2, 3, 3) = -1; }, "initial_evidence[1, 2, 3, 3]: " + evidence + "-1", false},
  };
}

}  // namespace

// Against: each check_* of check_values taken out, one after another; `x <= 0` for `x < 0`, under which β = 0 is refused.
TEST_CASE("Every forbidden value is named with its place: scan") {
  for (fault const& f : faults()) {
    INFO(f.text);
    recipe r = sizes();
    r.beta = f.rule.keeps_full() ? beta_shape::head : beta_shape::channel;
    CHECK_THAT(scan_says(f.rule, [&](scan_bench& s) { f.plant(s.c); }, r), says(f.text));
  }
}

TEST_CASE("Every forbidden value is named with its place: step") {
  for (fault const& f : faults()) {
    if (!f.in_step || f.rule.forget != gates::head) continue;  // steps are instantiated for one gate a head
    INFO(f.text);
    bool const per_channel = draw(f.rule, sizes(), 901).sizes.beta == beta_shape::channel;
    if (f.text.substr(0, 4) == "beta" && !f.rule.keeps_full() && !per_channel) continue;  // it has no such element
    CHECK_THAT(step_says(f.rule, [&](step_bench& s) { f.plant(s.c); }), says(f.text));
  }
  CHECK_THAT(step_says(palimpsa_, [](step_bench& s) { s.c.beta.view()(1, 2, 3) = -1; }), contains("beta[1, 2, 3"));
  CHECK_THAT(step_says(palimpsa_, [](step_bench& s) { s.a.evidence(1, 2, 3, 4) = -1; }),
             says("evidence[1, 2, 3, 4]: expected evidence of at least 0, given -1"));
  CHECK_THAT(step_says(mesa, [](step_bench& s) { s.a.evidence(0, 2, 3, 3) = -1; }),
             says("evidence[0, 2, 3, 3]: expected evidence of at least 0, given -1"));
}

TEST_CASE("NaN and infinity in beta, NaN in a gate or in evidence are no errors") {
  for (double x : {infinity, std::nan("")}) {
    scan_bench s(palimpsa_);
    s.c.beta.view()(1, 2, 3, 4) = x;
    if (x != x) s.c.log_decay.view()(0, 0, 1) = x, s.c.initial_evidence.view()(1, 0, 0, 0) = x;
    auto scratch = scratch_of(s.scratch_size);
    CHECK_NOTHROW(run_scan(palimpsa_, sequential{1}, s.in, s.out, palimpsa::workspace(scratch)));
  }
}

// Against: gates, β or the pool of all rows looked at.
TEST_CASE("Nothing of an inert row is looked at") {
  for (rule_name rule : {palimpsa_, mesa, mamba2}) {
    step_bench s(rule);
    std::int64_t const slots[] = {-1, 3};
    s.a.slot_in = {slots, 2};
    std::int64_t const none = 0;
    for (std::int64_t t = 0; t < 3; ++t)
      for (std::int64_t h = 0; h < 4; ++h) {
        *s.c.beta.view().at(none, t, h) = -5;
        *s.c.log_decay.view().at(none, t, h) = 5;
      }
    if (rule.keeps_precision())
      for (std::int64_t slot : {0, 1, 2, 4}) s.a.evidence(slot, 0, 0, 0) = -5;
    if (rule.keeps_precision()) s.states.fill(s.p, 3, 1);
    auto scratch = scratch_of(step_workspace(rule, sequential{1}, s.a));
    CHECK_NOTHROW(run_step(rule, sequential{1}, s.a, palimpsa::workspace(scratch)));
    s.a.slot_in = {};
    CHECK_THROWS_AS(run_step(rule, sequential{1}, s.a, palimpsa::workspace(scratch)), palimpsa::argument_error);
  }
}

TEST_CASE("Chunks and threads below what there can be are named") {
  problem const p = draw(mamba2, sizes(), 903);
  call<double> const c(p);
  CHECK_THROWS_WITH(scan_workspace(mamba2, sequential{-1}, c.in),
                    "palimpsa: threads: expected a number above 0, or 0 for as many as pay, given -1");
}
