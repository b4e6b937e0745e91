// Every clause of the contract's Errors that a shape, a pointer or a stride can break, per tensor: the exception names
// tensor, expected and given, and nothing was written.

#include "core/error_bench.hpp"

using namespace palimpsa_test;

TEST_CASE("A call without a fault is no error") {
  for (rule_name rule : {mamba2, palimpsa_, mesa, by_key, ungated, constant}) {
    scan_bench s(rule);
    auto scratch = scratch_of(s.scratch_size);
    CHECK_NOTHROW(run_scan(rule, sequential{1}, s.in, s.out, palimpsa::workspace(scratch)));
  }
}

TEST_CASE("A wrong shape is named, whichever tensor has it") {
  using S = scan_bench;
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.in.q = shaped({2, 3, 5});
                       }),
             says("q: expected [B,T,HK,K], given [2, 3, 5]"));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.in.v = shaped({2, 3, 24});
                       }),
             says("v: expected [B,T,HV,V], given [2, 3, 24]"));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.in.k = shaped({2, 3, 2, 6});
                       }),
             says("k: expected [B,T,HK,K] = [2, 3, 2, 5], given [2, 3, 2, 6]"));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.in.v = shaped({2, 4, 4, 6});
                       }),
             says("v: expected [B,T,HV,V] = [2, 3, 4, 6], given [2, 4, 4, 6]"));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.in.beta = shaped({2, 3, 2});
                       }),
             says("beta: expected [B,T,HV] = [2, 3, 4], given [2, 3, 2]"));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.in.beta = shaped({2, 3, 4, 5});
                       }),
             says("beta: expected [B,T,HV] or [B,T,HV,V] = [2, 3, 4, 6], given [2, 3, 4, 5]"));
  CHECK_THAT(scan_says(mesa,
                       [](S& s) {
                         s.in.beta = shaped({2, 3, 4, 6});
                       }),
             says("beta: expected [B,T,HV] = [2, 3, 4], given [2, 3, 4, 6]"));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.in.log_decay = shaped({2, 3, 4, 5});
                       }),
             says("log_decay: expected [B,T,HV] = [2, 3, 4], given [2, 3, 4, 5]"));
  CHECK_THAT(scan_says(by_key,
                       [](S& s) {
                         s.in.log_decay = shaped({2, 3, 4});
                       }),
             says("log_decay: expected [B,T,HV,K] = [2, 3, 4, 5], given [2, 3, 4]"));
  CHECK_THAT(scan_says(constant, [](S& s) { s.in.log_decay = shaped({3}); }),
             says("log_decay: expected [HV] = [4], given [3]"));
  CHECK_THAT(scan_says(ungated,
                       [](S& s) {
                         s.in.log_decay = shaped({2, 3, 4});
                       }),
             says("log_decay: expected absent, since this rule forgets nothing, given [2, 3, 4]"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.prior = shaped({2}); }),
             says("prior: expected [HV] = [4], given [2]"));
  CHECK_THAT(scan_says(palimpsa_,
                       [](S& s) {
                         s.in.prior = shaped({4, 5});
                       }),
             says("prior: expected [HV] = [4], given [4, 5]"));
  CHECK_THAT(scan_says(mesa,
                       [](S& s) {
                         s.in.prior = shaped({4, 4});
                       }),
             says("prior: expected [HV,K] = [4, 5], given [4, 4]"));
  CHECK_THAT(scan_says(mesa, [](S& s) { s.in.prior = shaped({5}); }),
             says("prior: expected [HV] or [HV,K] = [4], given [5]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.prior = shaped({4}); }),
             says("prior: expected absent, since this rule keeps no precision, given [4]"));
  CHECK_THAT(scan_says(palimpsa_,
                       [](S& s) {
                         s.in.initial_eta = shaped({2, 4, 5, 6});
                       }),
             says("initial_eta: expected [N,HV,V,K] = [2, 4, 6, 5], given [2, 4, 5, 6]"));
  CHECK_THAT(scan_says(palimpsa_,
                       [](S& s) {
                         s.in.initial_evidence = shaped({2, 4, 5, 5});
                       }),
             says("initial_evidence: expected [N,HV,V,K] = [2, 4, 6, 5], given [2, 4, 5, 5]"));
  CHECK_THAT(scan_says(mesa,
                       [](S& s) {
                         s.in.initial_evidence = shaped({2, 4, 6, 5});
                       }),
             says("initial_evidence: expected [N,HV,K,K] = [2, 4, 5, 5], given [2, 4, 6, 5]"));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.in.initial_evidence = shaped({2, 4, 6, 5});
                       }),
             says("initial_evidence: expected absent, since this rule keeps no precision, given [2, 4, 6, 5]"));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.out.out = shaped({2, 3, 4, 5});
                       }),
             says("out: expected [B,T,HV,V] = [2, 3, 4, 6], given [2, 3, 4, 5]"));
  CHECK_THAT(scan_says(palimpsa_,
                       [](S& s) {
                         s.out.out_variance = shaped({2, 3, 4});
                       }),
             says("out_variance: expected [B,T,HV,V] = [2, 3, 4, 6], given [2, 3, 4]"));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.out.out_variance = shaped({2, 3, 4, 6});
                       }),
             says("out_variance: expected absent, since this rule keeps no precision, given [2, 3, 4, 6]"));
  CHECK_THAT(scan_says(palimpsa_,
                       [](S& s) {
                         s.out.final_eta = shaped({1, 4, 6, 5});
                       }),
             says("final_eta: expected [N,HV,V,K] = [2, 4, 6, 5], given [1, 4, 6, 5]"));
  CHECK_THAT(scan_says(mesa,
                       [](S& s) {
                         s.out.final_evidence = shaped({2, 4, 6, 5});
                       }),
             says("final_evidence: expected [N,HV,K,K] = [2, 4, 5, 5], given [2, 4, 6, 5]"));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.out.final_evidence = shaped({2, 4, 6, 5});
                       }),
             says("final_evidence: expected absent, since this rule keeps no precision, given [2, 4, 6, 5]"));
}

TEST_CASE("Sizes outside the contract are named") {
  using S = scan_bench;
  auto const set = [](S& s, int axis, std::int64_t size) { s.in.q.extent[axis] = s.in.k.extent[axis] = size; };
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 3, 257); }),
             says("q: expected a last axis from 1 to 256, given 257"));
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 3, 0); }), says("q: expected a last axis from 1 to 256, given 0"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v.extent[3] = 300; }),
             says("v: expected a last axis from 1 to 256, given 300"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v.extent[3] = 0; }),
             says("v: expected a last axis from 1 to 256, given 0"));
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 2, 3); }),
             says("v: expected a multiple of 3 (the key heads) value heads, given 4"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v.extent[2] = 1; }),
             says("v: expected a multiple of 2 (the key heads) value heads, given 1"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v.extent[2] = 0; }),
             says("v: expected a multiple of 2 (the key heads) value heads, given 0"));
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 2, 0); }),
             says("q: expected at least one key head, given [2, 3, 0, 5]"));
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 1, -3); }),
             says("q: expected sizes of at least 0, given [2, -3, 2, 5]"));
  CHECK_THAT(scan_says(mamba2, [&](S& s) { set(s, 0, -1); }),
             says("q: expected sizes of at least 0, given [-1, 3, 2, 5]"));
}

TEST_CASE("A missing tensor is named") {
  using S = scan_bench;
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.q = {}; }), says("q: expected [B,T,HK,K], given absent"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.k = {}; }), says("k: expected [B,T,HK,K] = [2, 3, 2, 5], given absent"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.v = {}; }), says("v: expected [B,T,HV,V], given absent"));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.prior = {}; }), says("prior: expected [HV] = [4], given absent"));
  CHECK_THAT(scan_says(mesa, [](S& s) { s.in.prior = {}; }),
             says("prior: expected [HV] or [HV,K] = [4], given absent"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out = {}; }),
             says("out: expected [B,T,HV,V] = [2, 3, 4, 6], given absent"));

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
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.in.initial_evidence.data = nullptr; }),
             says("initial_evidence: " + state));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out.data = nullptr; }), says("out: " + v));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.out.out_variance.data = nullptr; }), says("out_variance: " + v));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.final_eta.data = nullptr; }), says("final_eta: " + state));
  CHECK_THAT(scan_says(palimpsa_, [](S& s) { s.out.final_evidence.data = nullptr; }), says("final_evidence: " + state));
}

TEST_CASE("Outputs whose elements share memory are refused, inputs are not") {
  using S = scan_bench;
  for (int axis = 0; axis < 4; ++axis) {
    std::string const text =
        ": expected a stride other than 0 along axis " + std::to_string(axis) + ", since it is written, given stride 0";
    CHECK_THAT(scan_says(palimpsa_, [=](S& s) { s.out.out.stride[axis] = 0; }), says("out" + text));
    CHECK_THAT(scan_says(palimpsa_, [=](S& s) { s.out.out_variance.stride[axis] = 0; }), says("out_variance" + text));
    CHECK_THAT(scan_says(palimpsa_, [=](S& s) { s.out.final_eta.stride[axis] = 0; }), says("final_eta" + text));
    CHECK_THAT(scan_says(palimpsa_, [=](S& s) { s.out.final_evidence.stride[axis] = 0; }),
               says("final_evidence" + text));
  }
  // out [2,3,4,6] with strides 72, 24, 6, 1: heads 5 apart run into each other, heads 7 apart do not.
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out.stride[2] = 5; }),
             says("out: expected strides that keep its elements apart, since it is written, given strides 5 and 1 "
                  "along axes 2 and 3 of [2, 3, 4, 6]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out.stride[2] = -1; }),
             says("out: expected strides that keep its elements apart, since it is written, given strides -1 and 1 "
                  "along axes 2 and 3 of [2, 3, 4, 6]"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out.stride[0] = 48; }),
             says("out: expected strides that keep its elements apart, since it is written, given strides 48 and 24 "
                  "along axes 0 and 1 of [2, 3, 4, 6]"));
  std::vector<double> wide(4096);
  scan_bench interlaced(mamba2);  // batch rows interlaced element by element
  interlaced.out.out = view<double>(wide.data(), {2, 3, 4, 6}, {1, 48, 12, 2});
  auto scratch = scratch_of(interlaced.scratch_size);
  CHECK_NOTHROW(run_scan(mamba2, sequential{1}, interlaced.in, interlaced.out, palimpsa::workspace(scratch)));
}
