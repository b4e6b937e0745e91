// Every clause of the contract's Errors, per tensor: the exception names tensor, expected and given, and nothing was written.

#include <functional>

#include "palimpsa/error.hpp"
#include "support/step_call.hpp"

using namespace palimpsa_test;
using palimpsa::sequential;
using palimpsa::view;

namespace {

/// B 2, T 3, HK 2, HV 4, K 5, V 6.
recipe sizes() {
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
      : p(draw(rule, r, 900)), c(p), x(c.outputs()), in(c.in), out{x.out, x.out_variance, x.final_eta, x.final_evidence},
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

std::string scan_says(rule_name rule, std::function<void(scan_bench&)> break_it, recipe const& r = sizes()) {
  return scan_bench(rule, r).message(break_it);
}

/// The same for a step of 3 tokens over 2 rows and 5 slots.
struct step_bench {
  problem p;
  call<double> c;
  pool<double> states;
  results<double> x;
  palimpsa::step_arguments<double> a;

  explicit step_bench(rule_name rule) : p(draw(rule, sizes(), 901)), c(p), states(p, 5), x(c.outputs()), a(states.arguments(c)) {
    a.out = x.out, a.out_variance = x.out_variance;
  }
};

std::string step_says(rule_name rule, std::function<void(step_bench&)> break_it) {
  step_bench s(rule);
  auto scratch = scratch_of(step_workspace(rule, sequential{1}, s.a));
  auto const eta = s.states.eta.bits(), evidence = s.states.evidence.bits();
  break_it(s);
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
auto says(std::string const& text) { return Catch::Matchers::Equals("palimpsa: " + text); }

double memory[4096];  // for views of wrong shapes; never read
view<double> shaped(std::initializer_list<std::int64_t> e) { return {memory, e}; }

rule_name const mamba2{kind::mamba2}, palimpsa_{kind::palimpsa}, mesa{kind::mesa_net}, by_key{kind::palimpsa, gates::key},
    ungated{kind::delta, gates::none}, constant{kind::palimpsa, gates::constant};

}  // namespace

TEST_CASE("A call without a fault is no error") {
  for (rule_name rule : {mamba2, palimpsa_, mesa, by_key, ungated, constant}) {
    scan_bench s(rule);
    auto scratch = scratch_of(s.scratch_size);
    CHECK_NOTHROW(run_scan(rule, sequential{1}, s.in, s.out, palimpsa::workspace(scratch)));
  }
}

TEST_CASE("A wrong shape is named, whichever tensor has it") {
  using S = scan_bench;
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.q = shaped({2, 3, 5}); }), says("q: expected [B,T,HK,K], given [2, 3, 5]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v = shaped({2, 3, 24}); }), says("v: expected [B,T,HV,V], given [2, 3, 24]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.k = shaped({2, 3, 2, 6}); }),
             says("k: expected [B,T,HK,K] = [2, 3, 2, 5], given [2, 3, 2, 6]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v = shaped({2, 4, 4, 6}); }),
             says("v: expected [B,T,HV,V] = [2, 3, 4, 6], given [2, 4, 4, 6]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.beta = shaped({2, 3, 2}); }), says("beta: expected [B,T,HV] = [2, 3, 4], given [2, 3, 2]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.beta = shaped({2, 3, 4, 5}); }),
             says("beta: expected [B,T,HV] or [B,T,HV,V] = [2, 3, 4, 6], given [2, 3, 4, 5]"));
  CHECK_THAT(scan_says(mesa, [](S& s) { s.in.beta = shaped({2, 3, 4, 6}); }),
             says("beta: expected [B,T,HV] = [2, 3, 4], given [2, 3, 4, 6]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.log_decay = shaped({2, 3, 4, 5}); }),
             says("log_decay: expected [B,T,HV] = [2, 3, 4], given [2, 3, 4, 5]"));
  CHECK_THAT(scan_says(by_key, [](S& s) { s.in.log_decay = shaped({2, 3, 4}); }),
             says("log_decay: expected [B,T,HV,K] = [2, 3, 4, 5], given [2, 3, 4]"));
  CHECK_THAT(scan_says(constant, [](S& s) { s.in.log_decay = shaped({3}); }), says("log_decay: expected [HV] = [4], given [3]"));
  CHECK_THAT(scan_says(ungated, [](S& s) { s.in.log_decay = shaped({2, 3, 4}); }),
             says("log_decay: expected absent, since this rule forgets nothing, given [2, 3, 4]"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.prior = shaped({2}); }), says("prior: expected [HV] = [4], given [2]"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.prior = shaped({4, 5}); }), says("prior: expected [HV] = [4], given [4, 5]"));
  CHECK_THAT(scan_says(mesa, [](S& s) { s.in.prior = shaped({4, 4}); }), says("prior: expected [HV,K] = [4, 5], given [4, 4]"));
  CHECK_THAT(scan_says(mesa, [](S& s) { s.in.prior = shaped({5}); }), says("prior: expected [HV] or [HV,K] = [4], given [5]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.prior = shaped({4}); }),
             says("prior: expected absent, since this rule keeps no precision, given [4]"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.initial_eta = shaped({2, 4, 5, 6}); }),
             says("initial_eta: expected [N,HV,V,K] = [2, 4, 6, 5], given [2, 4, 5, 6]"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.initial_evidence = shaped({2, 4, 5, 5}); }),
             says("initial_evidence: expected [N,HV,V,K] = [2, 4, 6, 5], given [2, 4, 5, 5]"));
  CHECK_THAT(scan_says(mesa, [](S& s) { s.in.initial_evidence = shaped({2, 4, 6, 5}); }),
             says("initial_evidence: expected [N,HV,K,K] = [2, 4, 5, 5], given [2, 4, 6, 5]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.initial_evidence = shaped({2, 4, 6, 5}); }),
             says("initial_evidence: expected absent, since this rule keeps no precision, given [2, 4, 6, 5]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out = shaped({2, 3, 4, 5}); }),
             says("out: expected [B,T,HV,V] = [2, 3, 4, 6], given [2, 3, 4, 5]"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.out.out_variance = shaped({2, 3, 4}); }),
             says("out_variance: expected [B,T,HV,V] = [2, 3, 4, 6], given [2, 3, 4]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out_variance = shaped({2, 3, 4, 6}); }),
             says("out_variance: expected absent, since this rule keeps no precision, given [2, 3, 4, 6]"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.out.final_eta = shaped({1, 4, 6, 5}); }),
             says("final_eta: expected [N,HV,V,K] = [2, 4, 6, 5], given [1, 4, 6, 5]"));
  CHECK_THAT(scan_says(mesa, [](S& s) { s.out.final_evidence = shaped({2, 4, 6, 5}); }),
             says("final_evidence: expected [N,HV,K,K] = [2, 4, 5, 5], given [2, 4, 6, 5]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.final_evidence = shaped({2, 4, 6, 5}); }),
             says("final_evidence: expected absent, since this rule keeps no precision, given [2, 4, 6, 5]"));
}

TEST_CASE("Sizes outside the contract are named") {
  using S = scan_bench;
  auto const set = [](S& s, int axis, std::int64_t size) { s.in.q.extent[axis] = s.in.k.extent[axis] = size; };
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 3, 257); }), says("q: expected a last axis from 1 to 256, given 257"));
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 3, 0); }), says("q: expected a last axis from 1 to 256, given 0"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v.extent[3] = 300; }), says("v: expected a last axis from 1 to 256, given 300"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v.extent[3] = 0; }), says("v: expected a last axis from 1 to 256, given 0"));
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 2, 3); }), says("v: expected a multiple of 3 (the key heads) value heads, given 4"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v.extent[2] = 1; }), says("v: expected a multiple of 2 (the key heads) value heads, given 1"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v.extent[2] = 0; }), says("v: expected a multiple of 2 (the key heads) value heads, given 0"));
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 2, 0); }), says("q: expected at least one key head, given [2, 3, 0, 5]"));
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 1, -3); }), says("q: expected sizes of at least 0, given [2, -3, 2, 5]"));
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 0, -1); }), says("q: expected sizes of at least 0, given [-1, 3, 2, 5]"));
}

TEST_CASE("A missing tensor is named") {
  using S = scan_bench;
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.q = {}; }), says("q: expected [B,T,HK,K], given absent"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.k = {}; }), says("k: expected [B,T,HK,K] = [2, 3, 2, 5], given absent"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v = {}; }), says("v: expected [B,T,HV,V], given absent"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.prior = {}; }), says("prior: expected [HV] = [4], given absent"));
  CHECK_THAT(scan_says(mesa, [](S& s) { s.in.prior = {}; }), says("prior: expected [HV] or [HV,K] = [4], given absent"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out = {}; }), says("out: expected [B,T,HV,V] = [2, 3, 4, 6], given absent"));

  // Present, but nothing behind it.
  std::string const q = "expected a pointer to 60 elements, given a null pointer";
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.q.data = nullptr; }), says("q: " + q));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.k.data = nullptr; }), says("k: " + q));
  std::string const v = "expected a pointer to 144 elements, given a null pointer";
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v.data = nullptr; }), says("v: " + v));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.beta.data = nullptr; }), says("beta: " + v));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.log_decay.data = nullptr; }),
             says("log_decay: expected a pointer to 24 elements, given a null pointer"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.prior.data = nullptr; }),
             says("prior: expected a pointer to 4 elements, given a null pointer"));
  std::string const state = "expected a pointer to 240 elements, given a null pointer";
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.initial_eta.data = nullptr; }), says("initial_eta: " + state));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.initial_evidence.data = nullptr; }), says("initial_evidence: " + state));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out.data = nullptr; }), says("out: " + v));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.out.out_variance.data = nullptr; }), says("out_variance: " + v));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.final_eta.data = nullptr; }), says("final_eta: " + state));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.out.final_evidence.data = nullptr; }), says("final_evidence: " + state));
}

TEST_CASE("Outputs whose elements share memory are refused, inputs are not") {
  using S = scan_bench;
  for (int axis = 0; axis < 4; ++axis) {
    std::string const text = ": expected a stride other than 0 along axis " + std::to_string(axis) + ", since it is written, given stride 0";
    CHECK_THAT(scan_says(palimpsa_, [=](S& s) { s.out.out.stride[axis] = 0; }), says("out" + text));
    CHECK_THAT(scan_says(palimpsa_, [=](S& s) { s.out.out_variance.stride[axis] = 0; }), says("out_variance" + text));
    CHECK_THAT(scan_says(palimpsa_, [=](S& s) { s.out.final_eta.stride[axis] = 0; }), says("final_eta" + text));
    CHECK_THAT(scan_says(palimpsa_, [=](S& s) { s.out.final_evidence.stride[axis] = 0; }), says("final_evidence" + text));
  }
  // out [2,3,4,6] with strides 72, 24, 6, 1: heads 5 apart run into each other, heads 7 apart do not.
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out.stride[2] = 5; }),
             says("out: expected strides that keep its elements apart, since it is written, given strides 5 and 1 along axes 2 and 3 of [2, 3, 4, 6]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out.stride[2] = -1; }),
             says("out: expected strides that keep its elements apart, since it is written, given strides -1 and 1 along axes 2 and 3 of [2, 3, 4, 6]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out.stride[0] = 48; }),
             says("out: expected strides that keep its elements apart, since it is written, given strides 48 and 24 along axes 0 and 1 of [2, 3, 4, 6]"));
  std::vector<double> wide(4096);
  scan_bench interlaced(mamba2);  // batch rows interlaced element by element
  interlaced.out.out = view<double>(wide.data(), {2, 3, 4, 6}, {1, 48, 12, 2});
  auto scratch = scratch_of(interlaced.scratch_size);
  CHECK_NOTHROW(run_scan(mamba2, sequential{1}, interlaced.in, interlaced.out, palimpsa::workspace(scratch)));
}

// Planted: `log_decay >= 0` refused, so that a gate of 0 is.
TEST_CASE("Values that break the contract are named with their place") {
  using S = scan_bench;
  double const infinity = std::numeric_limits<double>::infinity();
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.c.log_decay.view()(1, 2, 3) = 0.5; }),
             says("log_decay[1, 2, 3]: expected a natural logarithm of the gate, at most 0, given 0.5"));
  CHECK_THAT(scan_says(by_key, [](S& s) { s.c.log_decay.view()(0, 0, 1, 4) = 1e-9; }),
             says("log_decay[0, 0, 1, 4]: expected a natural logarithm of the gate, at most 0, given 1e-09"));
  CHECK_THAT(scan_says(constant, [](S& s) { s.c.log_decay.view()(3) = 2; }),
             says("log_decay[3]: expected a natural logarithm of the gate, at most 0, given 2"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.c.prior.view()(2) = 0; }), says("prior[2]: expected a finite precision above 0, given 0"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.c.prior.view()(0) = -1e-30; }),
             says("prior[0]: expected a finite precision above 0, given -1e-30"));
  CHECK_THAT(scan_says(palimpsa_, [=](S& s) { s.c.prior.view()(1) = infinity; }), says("prior[1]: expected a finite precision above 0, given inf"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.c.prior.view()(1) = std::nan(""); }), contains("prior[1]: expected a finite precision above 0, given "));
  recipe r = sizes();
  r.prior_per_key = true;
  CHECK_THAT(scan_says(mesa, [](S& s) { s.c.prior.view()(1, 4) = -2; }, r), says("prior[1, 4]: expected a finite precision above 0, given -2"));
  CHECK_THAT(scan_says(mesa, [](S& s) { s.c.initial_evidence.view()(1, 2, 3, 0) = 100; }),
             contains("initial_evidence[1, 2, 0, 3]: expected a symmetric matrix per head, given "));
  CHECK_THAT(scan_says(mamba2, [=](S& s) { s.in.scale = infinity; }), says("scale: expected a finite number, given inf"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.scale = std::nan(""); }), contains("scale: expected a finite number, given "));

  // Rounding of whoever made J is no fault, even where it is all there is of an element.
  scan_bench rounded_evidence(mesa);
  auto const J = rounded_evidence.c.initial_evidence.view();
  J(0, 0, 1, 2) = 3e-8, J(0, 0, 2, 1) = -2e-8;
  auto scratch = scratch_of(rounded_evidence.scratch_size);
  CHECK_NOTHROW(run_scan(mesa, sequential{1}, rounded_evidence.in, rounded_evidence.out, palimpsa::workspace(scratch)));
}

TEST_CASE("A scale beyond the arithmetic is refused") {
  problem const p = draw(mamba2, sizes(), 902);
  call<float> c(p);
  results<float> x = c.outputs();
  c.in.scale = 1e39;
  CHECK_THROWS_AS(c.run(x), palimpsa::argument_error);
  CHECK(x.still_poisoned());
}

TEST_CASE("Packed boundaries that break the contract are named") {
  recipe r = sizes();
  r.lengths = {4, 0, 5};
  using S = scan_bench;
  auto const with = [&](std::vector<std::int64_t> cu) {
    std::vector<std::int32_t> const narrow_cu(cu.begin(), cu.end());
    std::string const text = scan_says(palimpsa_, [&](S& s) { s.in.cu_seqlens = {cu.data(), 4}; }, r);
    CHECK(scan_says(palimpsa_, [&](S& s) { s.in.cu_seqlens = {narrow_cu.data(), 4}; }, r) == text);
    return text;
  };
  CHECK_THAT(with({1, 4, 4, 9}), says("cu_seqlens[0]: expected 0, given 1"));
  CHECK_THAT(with({0, 5, 4, 9}), says("cu_seqlens[2]: expected at least 5, given 4"));
  CHECK_THAT(with({0, 4, 4, 8}), says("cu_seqlens[3]: expected T = 9, given 8"));
  CHECK_THAT(with({0, 4, 4, 10}), says("cu_seqlens[3]: expected T = 9, given 10"));
  CHECK_THAT(with({0, -4, 4, 9}), says("cu_seqlens[1]: expected at least 0, given -4"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.cu_seqlens.data = nullptr; }, r), says("cu_seqlens: expected a pointer, given a null pointer"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.cu_seqlens.extent[0] = 0; }, r), says("cu_seqlens: expected [N+1], at least one boundary, given 0"));
  std::int64_t const two[] = {0, 3, 6};
  CHECK_THAT(scan_says(palimpsa_, [&](S& s) { s.in.cu_seqlens = {two, 3}; }), says("q: expected B = 1 with cu_seqlens, given B = 2"));
  std::int64_t const one[] = {0, 9};  // then there is one state
  CHECK_THAT(scan_says(palimpsa_, [&](S& s) { s.in.cu_seqlens = {one, 2}; }, r),
             says("initial_eta: expected [N,HV,V,K] = [1, 4, 6, 5], given [3, 4, 6, 5]"));
}

TEST_CASE("A step names what is wrong, and touches neither output nor state") {
  using S = step_bench;
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.q = {}; }), says("q: expected [B,T,HK,K], given absent"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.k = shaped({2, 3, 1, 5}); }), says("k: expected [B,T,HK,K] = [2, 3, 2, 5], given [2, 3, 1, 5]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.v = shaped({2, 3, 3, 6}); }), says("v: expected a multiple of 2 (the key heads) value heads, given 3"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.beta = shaped({2, 3, 5}); }), says("beta: expected [B,T,HV] = [2, 3, 4], given [2, 3, 5]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.log_decay = shaped({2, 3}); }), says("log_decay: expected [B,T,HV] = [2, 3, 4], given [2, 3]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.prior = {}; }), says("prior: expected [HV] = [4], given absent"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.eta = {}; }), says("eta: expected [slots,HV,V,K], given absent"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.eta = shaped({5, 4, 5, 6}); }),
             says("eta: expected [slots,HV,V,K] = [5, 4, 6, 5], given [5, 4, 5, 6]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.evidence = {}; }),
             says("evidence: expected a pool beside eta, since this rule keeps a precision, given absent"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.evidence = narrow(s.a.evidence, 0, 0, 4); }),
             says("evidence: expected [slots,HV,V,K] = [5, 4, 6, 5], given [4, 4, 6, 5]"));
  CHECK_THAT(step_says(mesa, [](S& s) { s.a.evidence = shaped({5, 4, 6, 5}); }),
             says("evidence: expected [slots,HV,K,K] = [5, 4, 5, 5], given [5, 4, 6, 5]"));
  CHECK_THAT(step_says(mamba2, [](S& s) { s.a.evidence = shaped({5, 4, 6, 5}); }),
             says("evidence: expected absent, since this rule keeps no precision, given [5, 4, 6, 5]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.eta.stride[0] = 0; }),
             says("eta: expected a stride other than 0 along axis 0, since it is written, given stride 0"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.evidence.stride[3] = 0; }),
             says("evidence: expected a stride other than 0 along axis 3, since it is written, given stride 0"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.eta = narrow(s.a.eta, 0, 0, 1), s.a.evidence = narrow(s.a.evidence, 0, 0, 1); }),
             says("eta: expected at least B = 2 slots without slot_in, given 1"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.out = shaped({2, 3, 4}); }), says("out: expected [B,n,HV,V] = [2, 3, 4, 6], given [2, 3, 4]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.out = {}; }), says("out: expected [B,n,HV,V] = [2, 3, 4, 6], given absent"));
  CHECK_THAT(step_says(mamba2, [](S& s) { s.a.out_variance = shaped({2, 3, 4, 6}); }),
             says("out_variance: expected absent, since this rule keeps no precision, given [2, 3, 4, 6]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.c.log_decay.view()(1, 0, 0) = 1; }),
             says("log_decay[1, 0, 0]: expected a natural logarithm of the gate, at most 0, given 1"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.c.prior.view()(3) = -1; }), says("prior[3]: expected a finite precision above 0, given -1"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.scale = std::nan(""); }), contains("scale: expected a finite number, given "));
  std::int64_t const list[] = {0, 1, 2, 3, 4, 5};
  CHECK_THAT(step_says(palimpsa_, [&](S& s) { s.a.slot_in = {list, 3}; }), says("slot_in: expected [B], given [3]"));
  CHECK_THAT(step_says(palimpsa_, [&](S& s) { s.a.slot_in = {list, 2, 3}; }), says("slot_in: expected [B], given [2, 3]"));
  CHECK_THAT(step_says(palimpsa_, [&](S& s) { s.a.slot_out = {list, 1}; }), says("slot_out: expected [B] or [B,n], given [1]"));
  CHECK_THAT(step_says(palimpsa_, [&](S& s) { s.a.slot_out = {list, 3, 2}; }), says("slot_out: expected [B] or [B,n], given [3, 2]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.slot_in = {static_cast<std::int64_t const*>(nullptr), 2}; }),
             says("slot_in: expected a pointer, given a null pointer"));
}
