// Every clause of the contract's Errors that a value can break, and those of a step: the exception names tensor,
// expected and given, and nothing was written.

#include "core/error_bench.hpp"

using namespace palimpsa_test;

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
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.c.prior.view()(2) = 0; }),
             says("prior[2]: expected a finite, normal precision above 0, given 0"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.c.prior.view()(0) = -1e-30; }),
             says("prior[0]: expected a finite, normal precision above 0, given -1e-30"));
  CHECK_THAT(scan_says(palimpsa_, [=](S& s) { s.c.prior.view()(1) = infinity; }),
             says("prior[1]: expected a finite, normal precision above 0, given inf"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.c.prior.view()(1) = std::nan(""); }),
             contains("prior[1]: expected a finite, normal precision above 0, given "));
  recipe r = sizes();
  r.prior_per_key = true;
  CHECK_THAT(scan_says(
                 mesa, [](S& s) { s.c.prior.view()(1, 4) = -2; }, r),
             says("prior[1, 4]: expected a finite, normal precision above 0, given -2"));
  CHECK_THAT(scan_says(mesa, [](S& s) { s.c.initial_evidence.view()(1, 2, 3, 0) = 100; }),
             contains("initial_evidence[1, 2, 0, 3]: expected a symmetric matrix per head, given "));
  CHECK_THAT(scan_says(mamba2, [=](S& s) { s.in.scale = infinity; }),
             says("scale: expected a finite number, given inf"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.scale = std::nan(""); }),
             contains("scale: expected a finite number, given "));

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
    std::string const text = scan_says(
        palimpsa_,
        [&](S& s) {
          s.in.cu_seqlens = {cu.data(), 4};
        },
        r);
    CHECK(scan_says(
              palimpsa_,
              [&](S& s) {
                s.in.cu_seqlens = {narrow_cu.data(), 4};
              },
              r) == text);
    return text;
  };
  CHECK_THAT(with({1, 4, 4, 9}), says("cu_seqlens[0]: expected 0, given 1"));
  CHECK_THAT(with({0, 5, 4, 9}), says("cu_seqlens[2]: expected at least 5, given 4"));
  CHECK_THAT(with({0, 4, 4, 8}), says("cu_seqlens[3]: expected T = 9, given 8"));
  CHECK_THAT(with({0, 4, 4, 10}), says("cu_seqlens[3]: expected T = 9, given 10"));
  CHECK_THAT(with({0, -4, 4, 9}), says("cu_seqlens[1]: expected at least 0, given -4"));
  CHECK_THAT(scan_says(
                 palimpsa_, [](S& s) { s.in.cu_seqlens.data = nullptr; }, r),
             says("cu_seqlens: expected a pointer, given a null pointer"));
  CHECK_THAT(scan_says(
                 palimpsa_, [](S& s) { s.in.cu_seqlens.extent[0] = 0; }, r),
             says("cu_seqlens: expected [N+1], at least one boundary, given 0"));
  std::int64_t const two[] = {0, 3, 6};
  CHECK_THAT(scan_says(palimpsa_,
                       [&](S& s) {
                         s.in.cu_seqlens = {two, 3};
                       }),
             says("q: expected B = 1 with cu_seqlens, given B = 2"));
  std::int64_t const one[] = {0, 9};  // then there is one state
  CHECK_THAT(scan_says(
                 palimpsa_,
                 [&](S& s) {
                   s.in.cu_seqlens = {one, 2};
                 },
                 r),
             says("initial_eta: expected [N,HV,V,K] = [1, 4, 6, 5], given [3, 4, 6, 5]"));
}

TEST_CASE("A step names what is wrong, and touches neither output nor state") {
  using S = step_bench;
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.q = {}; }), says("q: expected [B,T,HK,K], given absent"));
  CHECK_THAT(step_says(palimpsa_,
                       [](S& s) {
                         s.a.k = shaped({2, 3, 1, 5});
                       }),
             says("k: expected [B,T,HK,K] = [2, 3, 2, 5], given [2, 3, 1, 5]"));
  CHECK_THAT(step_says(palimpsa_,
                       [](S& s) {
                         s.a.v = shaped({2, 3, 3, 6});
                       }),
             says("v: expected a multiple of 2 (the key heads) value heads, given 3"));
  CHECK_THAT(step_says(palimpsa_,
                       [](S& s) {
                         s.a.beta = shaped({2, 3, 5});
                       }),
             says("beta: expected [B,T,HV] = [2, 3, 4], given [2, 3, 5]"));
  CHECK_THAT(step_says(palimpsa_,
                       [](S& s) {
                         s.a.log_decay = shaped({2, 3});
                       }),
             says("log_decay: expected [B,T,HV] = [2, 3, 4], given [2, 3]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.prior = {}; }), says("prior: expected [HV] = [4], given absent"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.eta = {}; }), says("eta: expected [slots,HV,V,K], given absent"));
  CHECK_THAT(step_says(palimpsa_,
                       [](S& s) {
                         s.a.eta = shaped({5, 4, 5, 6});
                       }),
             says("eta: expected [slots,HV,V,K] = [5, 4, 6, 5], given [5, 4, 5, 6]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.evidence = {}; }),
             says("evidence: expected a pool beside eta, since this rule keeps a precision, given absent"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.evidence = narrow(s.a.evidence, 0, 0, 4); }),
             says("evidence: expected [slots,HV,V,K] = [5, 4, 6, 5], given [4, 4, 6, 5]"));
  CHECK_THAT(step_says(mesa,
                       [](S& s) {
                         s.a.evidence = shaped({5, 4, 6, 5});
                       }),
             says("evidence: expected [slots,HV,K,K] = [5, 4, 5, 5], given [5, 4, 6, 5]"));
  CHECK_THAT(step_says(mamba2,
                       [](S& s) {
                         s.a.evidence = shaped({5, 4, 6, 5});
                       }),
             says("evidence: expected absent, since this rule keeps no precision, given [5, 4, 6, 5]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.eta.stride[0] = 0; }),
             says("eta: expected a stride other than 0 along axis 0, since it is written, given stride 0"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.evidence.stride[3] = 0; }),
             says("evidence: expected a stride other than 0 along axis 3, since it is written, given stride 0"));
  CHECK_THAT(step_says(palimpsa_,
                       [](S& s) { s.a.eta = narrow(s.a.eta, 0, 0, 1), s.a.evidence = narrow(s.a.evidence, 0, 0, 1); }),
             says("eta: expected at least B = 2 slots without slot_in, given 1"));
  CHECK_THAT(step_says(palimpsa_,
                       [](S& s) {
                         s.a.out = shaped({2, 3, 4});
                       }),
             says("out: expected [B,n,HV,V] = [2, 3, 4, 6], given [2, 3, 4]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.out = {}; }),
             says("out: expected [B,n,HV,V] = [2, 3, 4, 6], given absent"));
  CHECK_THAT(step_says(mamba2,
                       [](S& s) {
                         s.a.out_variance = shaped({2, 3, 4, 6});
                       }),
             says("out_variance: expected absent, since this rule keeps no precision, given [2, 3, 4, 6]"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.c.log_decay.view()(1, 0, 0) = 1; }),
             says("log_decay[1, 0, 0]: expected a natural logarithm of the gate, at most 0, given 1"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.c.prior.view()(3) = -1; }),
             says("prior[3]: expected a finite, normal precision above 0, given -1"));
  CHECK_THAT(step_says(palimpsa_, [](S& s) { s.a.scale = std::nan(""); }),
             contains("scale: expected a finite number, given "));
  std::int64_t const list[] = {0, 1, 2, 3, 4, 5};
  CHECK_THAT(step_says(palimpsa_, [&](S& s) { s.a.slot_in = {list, 3}; }), says("slot_in: expected [B], given [3]"));
  CHECK_THAT(step_says(palimpsa_,
                       [&](S& s) {
                         s.a.slot_in = {list, 2, 3};
                       }),
             says("slot_in: expected [B], given [2, 3]"));
  CHECK_THAT(step_says(palimpsa_,
                       [&](S& s) {
                         s.a.slot_out = {list, 1};
                       }),
             says("slot_out: expected [B] or [B,n], given [1]"));
  CHECK_THAT(step_says(palimpsa_,
                       [&](S& s) {
                         s.a.slot_out = {list, 3, 2};
                       }),
             says("slot_out: expected [B] or [B,n], given [3, 2]"));
  CHECK_THAT(step_says(palimpsa_,
                       [](S& s) {
                         s.a.slot_in = {static_cast<std::int64_t const*>(nullptr), 2};
                       }),
             says("slot_in: expected a pointer, given a null pointer"));
}
