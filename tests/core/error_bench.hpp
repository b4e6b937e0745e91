#pragma once
// Calls whose arguments a test breaks: what the exception says, checked to have come before anything was written.

#include <functional>

#include "palimpsa/error.hpp"
#include "support/step_call.hpp"

namespace palimpsa_test {

using palimpsa::sequential;
using palimpsa::view;

/// B 2, T 3, HK 2, HV 4, K 5, V 6.
inline recipe sizes() {
  recipe r;
  r.B = 2, r.T = 3, r.HK = 2, r.HV = 4, r.K = 5, r.V = 6;
  return r;
}

/// A scan whose arguments a test breaks.
struct scan_bench {
  problem p;
  call<double> c;
  results<double> x;
  palimpsa::scan_inputs<double> in;
  palimpsa::scan_outputs<double> out;
  std::size_t scratch_size;

  explicit scan_bench(rule_name rule, recipe const& r = sizes())
      : p(draw(rule, r, 900)),
        c(p),
        x(c.outputs()),
        in(c.in),
        out{x.out, x.out_variance, x.final_eta, x.final_evidence},
        scratch_size(scan_workspace(rule, sequential{1}, c.in)) {}

  /// What the call says after `break_it`, checked to have written nothing.
  std::string message(std::function<void(scan_bench&)> break_it) {
    break_it(*this);
    auto scratch = scratch_of(scratch_size);
    std::string text = "no exception";
    try {
      run_scan(p.rule, sequential{1}, in, out, palimpsa::workspace(scratch));
    } catch (palimpsa::argument_error const& e) {
      text = e.what();
    }
    CHECK(x.still_poisoned());
    return text;
  }
};

inline std::string scan_says(rule_name rule, std::function<void(scan_bench&)> break_it, recipe const& r = sizes()) {
  return scan_bench(rule, r).message(break_it);
}

/// The same for a step of 3 tokens over 2 rows and 5 slots.
struct step_bench {
  problem p;
  call<double> c;
  pool<double> states;
  results<double> x;
  palimpsa::step_arguments<double> a;

  explicit step_bench(rule_name rule)
      : p(draw(rule, sizes(), 901)), c(p), states(p, 5), x(c.outputs()), a(states.arguments(c)) {
    a.out = x.out, a.out_variance = x.out_variance;
  }
};

inline std::string step_says(rule_name rule, std::function<void(step_bench&)> break_it) {
  step_bench s(rule);
  auto scratch = scratch_of(step_workspace(rule, sequential{1}, s.a));
  break_it(s);
  auto const eta = s.states.eta.bits(), evidence = s.states.evidence.bits();
  std::string text = "no exception";
  try {
    run_step(rule, sequential{1}, s.a, palimpsa::workspace(scratch));
  } catch (palimpsa::argument_error const& e) {
    text = e.what();
  }
  CHECK(s.x.still_poisoned());
  CHECK((eta == s.states.eta.bits() && evidence == s.states.evidence.bits()));
  return text;
}

/// The whole message.
inline auto says(std::string const& text) { return Catch::Matchers::Equals("palimpsa: " + text); }

inline double memory[4096];  // for views of wrong shapes; never read
inline view<double> shaped(std::initializer_list<std::int64_t> e) { return {memory, e}; }

inline rule_name const mamba2{kind::mamba2}, palimpsa_{kind::palimpsa}, mesa{kind::mesa_net},
    by_key{kind::palimpsa, gates::key}, ungated{kind::delta, gates::none}, constant{kind::palimpsa, gates::constant};

}  // namespace palimpsa_test
