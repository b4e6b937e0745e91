// Every clause of the contract's Errors that a shape, a pointer or a stride can break, per tensor: the exception names
// tensor, expected and given, and nothing was written.

#include <cstdint>
#include <limits>
#include <set>

#include "core/error_bench.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/overlap.hpp"
#include "palimpsa/scan_backward.hpp"
#include "palimpsa/scan_chunked.hpp"

using namespace palimpsa_test;

namespace {

template <class F>
void for_each_place(view<double> const& v, F f) {
  std::int64_t e[4], i[4];
  for (int a = 0; a < 4; ++a) e[a] = a < v.rank ? v.extent[a] : 1;
  for (i[0] = 0; i[0] < e[0]; ++i[0])
    for (i[1] = 0; i[1] < e[1]; ++i[1])
      for (i[2] = 0; i[2] < e[2]; ++i[2])
        for (i[3] = 0; i[3] < e[3]; ++i[3]) f(i);
}

std::int64_t offset_of(view<double> const& v, std::int64_t const* i) {
  std::int64_t offset = 0;
  for (int a = 0; a < v.rank; ++a) offset += i[a] * v.stride[a];
  return offset;
}

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
  std::string const apart = "out: expected strides that keep its elements apart, since it is written, given strides ";
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out.stride[2] = 5; }),
             says(apart + "[72, 24, 5, 1] over [2, 3, 4, 6]: elements [0, 0, 1, 0] and [0, 0, 0, 5] are one"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out.stride[2] = -1; }),
             says(apart + "[72, 24, -1, 1] over [2, 3, 4, 6]: elements [0, 0, 0, 0] and [0, 0, 1, 1] are one"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.out.out.stride[0] = 48; }),
             contains(apart + "[48, 24, 6, 1] over [2, 3, 4, 6]: elements ["));
  std::vector<double> wide(4096);
  scan_bench interlaced(mamba2);  // batch rows interlaced element by element
  interlaced.out.out = view<double>(wide.data(), {2, 3, 4, 6}, {1, 48, 12, 2});
  auto scratch = scratch_of(interlaced.scratch_size);
  CHECK_NOTHROW(run_scan(mamba2, sequential{1}, interlaced.in, interlaced.out, palimpsa::workspace(scratch)));
}

// Against: pairs of axes compared, and no more: {3, 2, 2, 1} over [2, 2, 1, 2] has no two axes that meet.
TEST_CASE("Overlap of a written tensor is decided exactly") {
  view<double> const three_axes(memory, {2, 2, 1, 2}, {3, 2, 2, 1});
  auto const found = palimpsa::find_overlap(three_axes);
  CHECK(found.kind == palimpsa::overlap::found);

  dice d(977);
  int collide = 0, apart = 0;
  for (int n = 0; n < 20000; ++n) {
    view<double> v;
    v.data = memory;
    v.rank = static_cast<int>(d.integer(1, 4));
    std::int64_t const widest = d.integer(1, 30);
    for (int a = 0; a < v.rank; ++a) {
      v.extent[a] = d.integer(1, 6);
      do v.stride[a] = d.integer(-widest, widest);
      while (v.stride[a] == 0 && v.extent[a] > 1);
    }
    std::set<std::int64_t> places;
    std::int64_t count = 0;
    for_each_place(v, [&](std::int64_t const* i) { places.insert(offset_of(v, i)), ++count; });
    auto const answer = palimpsa::find_overlap(v);
    bool const one = static_cast<std::int64_t>(places.size()) < count;
    INFO(palimpsa::shape_text(v) << " strides " << v.stride[0] << ", " << v.stride[1] << ", " << v.stride[2] << ", " << v.stride[3]);
    REQUIRE(answer.kind == (one ? palimpsa::overlap::found : palimpsa::overlap::none));
    if (one) {
      bool inside = true, same = true;
      for (int a = 0; a < v.rank; ++a) {
        inside = inside && answer.first[a] < v.extent[a] && answer.second[a] < v.extent[a];
        same = same && answer.first[a] == answer.second[a];
      }
      REQUIRE((inside && !same && offset_of(v, answer.first) == offset_of(v, answer.second)));
    }
    (one ? collide : apart)++;
  }
  CHECK((collide > 2000 && apart > 2000));

  // Long axes are decided in closed form; what is beyond any effort is said to be.
  std::int64_t const p = (std::int64_t{1} << 31) - 1;
  CHECK(palimpsa::find_overlap(view<double>(memory, {p, p}, {p + 2, p})).kind == palimpsa::overlap::none);
  CHECK(palimpsa::find_overlap(view<double>(memory, {p, p + 1}, {p - 1, p})).kind == palimpsa::overlap::none);
  CHECK(palimpsa::find_overlap(view<double>(memory, {p + 1, p + 1}, {p, p - 1})).kind == palimpsa::overlap::found);
  CHECK(palimpsa::find_overlap(view<double>(memory, {5000, 5000, 5000, 5000}, {99991, 99989, 99971, 99961})).kind ==
        palimpsa::overlap::undecided);
}

// Against: element counts in plain 64-bit arithmetic, where 2³² · 2³² is 0 and no pointer is missed.
TEST_CASE("Sizes that wrap are refused in a sentence") {
  std::int64_t const huge = std::int64_t{1} << 32;
  palimpsa::scan_inputs<float> in;
  float const x = 0;
  in.q = in.k = in.v = view<float const>(nullptr, {huge, huge, 1, 1});
  std::string const text = "palimpsa: q: expected at most 2^56 elements, given [4294967296, 4294967296, 1, 1]";
  CHECK_THROWS_WITH(palimpsa::check_shapes<palimpsa::Mamba2>(in), text);
  in.q = in.k = in.v = view<float const>(&x, {huge, huge, 1, 1}, {0, 0, 0, 0});
  CHECK_THROWS_WITH(palimpsa::check_shapes<palimpsa::Mamba2>(in), text);
  in.q = in.k = in.v = view<float const>(&x, {1, 2, 1, 1}, {0, std::int64_t{1} << 60, 0, 0});
  CHECK_THROWS_WITH(palimpsa::check_shapes<palimpsa::Mamba2>(in), contains("q: expected strides that reach at most 2^56 elements far"));
  in.q = in.k = in.v = view<float const>(&x, {1, 2, 1, 1}, {0, std::numeric_limits<std::int64_t>::min(), 0, 0});
  CHECK_THROWS_WITH(palimpsa::check_shapes<palimpsa::Mamba2>(in), contains("q: expected strides that reach"));

  in.q = in.k = view<float const>(&x, {1, std::int64_t{1} << 45, 1, 256}, {0, 0, 0, 0});
  in.v = in.q;
  CHECK_NOTHROW(palimpsa::check_shapes<palimpsa::Mamba2>(in));
  CHECK_THROWS_WITH(palimpsa::scan_backward_workspace<palimpsa::Mamba2>({1, 1}, in), contains("workspace: expected a call that needs at most"));
  CHECK_THROWS_WITH(palimpsa::scan_workspace<palimpsa::Mamba2>(palimpsa::chunked{std::int64_t{1} << 45, 1}, in),
                    contains("workspace: expected a call that needs at most"));
  std::vector<std::int64_t> none(1);
  in.q = in.k = in.v = view<float const>(&x, {1, 0, 1, 256});
  in.cu_seqlens = {none.data(), (std::int64_t{1} << 50) + 1};
  in.cu_seqlens.stride[0] = 0;
  CHECK_THROWS_WITH(palimpsa::check_shapes<palimpsa::Mamba2>(in), contains("sizes: expected N*HV*K*max(K,V) of at most 2^56"));
}

// Against: the hints taken out.
TEST_CASE("Head-major tensors and a list of boundaries a row get a hint") {
  using S = scan_bench;
  std::string const hint = "have tokens and heads exchanged: every tensor is [B,T,H,...]";
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.q = shaped({2, 2, 3, 5}); }), contains("q and v") || contains("q and k"));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.q = shaped({2, 2, 3, 5}); }), contains(hint));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.in.q = s.in.k = shaped({2, 4, 3, 5});
                         s.in.v = shaped({2, 4, 3, 6});
                       }),
             contains("beta: expected") && contains("v and beta " + hint));
  CHECK_THAT(scan_says(mamba2,
                       [](S& s) {
                         s.in.q = s.in.k = shaped({2, 4, 3, 5});
                         s.in.v = shaped({2, 4, 3, 6});
                         s.in.beta = {};
                       }),
             contains("log_decay: expected") && contains("v and log_decay " + hint));
  CHECK_THAT(scan_says(mamba2, [](S& s) { s.in.beta = shaped({2, 3, 2}); }), !contains("exchanged"));
  std::int64_t const list[] = {0, 3, 0, 3};
  CHECK_THAT(scan_says(mamba2,
                       [&](S& s) {
                         s.in.cu_seqlens = {list, 2, 2};
                       }),
             says("cu_seqlens: expected [N+1], the boundaries of all sequences in one list, given [2, 2] (a list a batch row: pack the "
                  "rows into one, B = 1)"));
}
