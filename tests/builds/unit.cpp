// One build of the library: this file compiled with flags of its own (PALIMPSA_TEST_BUILD is its name), on every path.

#include <cstring>
#include <random>
#include <vector>

#include "builds.hpp"
#include "palimpsa/palimpsa.hpp"

namespace {

using namespace palimpsa;
using palimpsa_test::tell;

constexpr std::int64_t B = 2, T = 37, HK = 1, HV = 2, K = 24, V = 21;  // V ends amid a pack of any width

#define PALIMPSA_TEST_TEXT_(name) #name
#define PALIMPSA_TEST_TEXT(name) PALIMPSA_TEST_TEXT_(name)
constexpr char const* build = PALIMPSA_TEST_TEXT(PALIMPSA_TEST_BUILD);

/// Numbers between low and high, without the library's or <random>'s distributions: the same in every build.
std::vector<float> numbers(std::int64_t n, float low, float high) {
  static std::mt19937 random(7);
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& y : x) y = low + (high - low) * static_cast<float>(random() >> 8) * 0x1p-24f;
  return x;
}

/// The tensors of all calls; made once, so that every rule sees the same.
struct tensors {
  std::vector<float> q = numbers(B * T * HK * K, -1, 1), k = numbers(B * T * HK * K, -0.3f, 0.3f), v = numbers(B * T * HV * V, -1, 1);
  std::vector<float> beta = numbers(B * T * HV, 0, 1), log_decay = numbers(B * T * HV, -1, 0), prior = numbers(HV, 0.5f, 2);
  std::vector<float> up = numbers(B * T * HV * V, -1, 1);
};

/// Memory that a call writes, poisoned.
struct written {
  explicit written(std::vector<std::int64_t> e) : extent(e.begin(), e.end()) {
    std::size_t n = 1;
    for (std::int64_t x : e) n *= static_cast<std::size_t>(x);
    values.assign(n, -7);
  }
  std::uint64_t bits() const {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (float x : values) {
      std::uint32_t word;
      std::memcpy(&word, &x, sizeof word);
      hash = (hash ^ word) * 1099511628211u;
    }
    return hash;
  }
  view<float> as_view() {
    if (extent.size() == 1) return {values.data(), {extent[0]}};
    if (extent.size() == 3) return {values.data(), {extent[0], extent[1], extent[2]}};
    return {values.data(), {extent[0], extent[1], extent[2], extent[3]}};
  }
  std::vector<float> values;
  std::vector<std::int64_t> extent;
};

template <class Rule>
scan_inputs<float> inputs(tensors const& x) {
  scan_inputs<float> in;
  in.q = {x.q.data(), {B, T, HK, K}}, in.k = {x.k.data(), {B, T, HK, K}}, in.v = {x.v.data(), {B, T, HV, V}};
  in.beta = {x.beta.data(), {B, T, HV}}, in.log_decay = {x.log_decay.data(), {B, T, HV}};
  if (Rule::keeps_precision) in.prior = {x.prior.data(), {HV}};
  return in;
}

template <class Rule>
constexpr std::int64_t evidence_rows = Rule::keeps_full ? K : V;

template <class Rule, class How>
void run_scan(tensors const& x, How how, char const* rule, char const* path, tell say) {
  written out({B, T, HV, V}), variance({B, T, HV, V}), eta({B, HV, V, K}), evidence({B, HV, evidence_rows<Rule>, K});
  scan_outputs<float> to;
  to.out = out.as_view(), to.final_eta = eta.as_view();
  if (Rule::keeps_precision) to.out_variance = variance.as_view(), to.final_evidence = evidence.as_view();
  scan<Rule>(how, inputs<Rule>(x), to, allocate);
  say(build, rule, path, "out", out.bits());
  say(build, rule, path, "out_variance", variance.bits());
  say(build, rule, path, "final_eta", eta.bits());
  say(build, rule, path, "final_evidence", evidence.bits());
}

template <class Rule>
void run_step(tensors const& x, char const* rule, tell say) {
  written out({B, T, HV, V}), eta({B, HV, V, K}), evidence({B, HV, evidence_rows<Rule>, K});
  std::fill(eta.values.begin(), eta.values.end(), 0.25f);
  std::fill(evidence.values.begin(), evidence.values.end(), 0.0f);
  scan_inputs<float> const in = inputs<Rule>(x);
  step_arguments<float> a;
  a.q = in.q, a.k = in.k, a.v = in.v, a.beta = in.beta, a.log_decay = in.log_decay, a.prior = in.prior;
  a.eta = eta.as_view(), a.out = out.as_view();
  if (Rule::keeps_precision) a.evidence = evidence.as_view();
  step<Rule>(sequential{}, a, allocate);
  say(build, rule, "step", "out", out.bits());
  say(build, rule, "step", "eta", eta.bits());
  say(build, rule, "step", "evidence", evidence.bits());
}

template <class Rule>
void run_backward(tensors const& x, char const* rule, tell say) {
  written q({B, T, HK, K}), k({B, T, HK, K}), v({B, T, HV, V}), beta({B, T, HV}), log_decay({B, T, HV}), prior({HV});
  scan_cotangents<float> up;
  up.grad_out = {x.up.data(), {B, T, HV, V}};
  scan_gradients<float> down;
  down.grad_q = q.as_view(), down.grad_k = k.as_view(), down.grad_v = v.as_view(), down.grad_beta = beta.as_view();
  down.grad_log_decay = log_decay.as_view();
  if (Rule::keeps_precision) down.grad_prior = prior.as_view();
  scan_backward<Rule>(checkpointed{8}, inputs<Rule>(x), up, down, allocate);
  say(build, rule, "backward", "grad_q", q.bits());
  say(build, rule, "backward", "grad_k", k.bits());
  say(build, rule, "backward", "grad_v", v.bits());
  say(build, rule, "backward", "grad_beta", beta.bits());
  say(build, rule, "backward", "grad_log_decay", log_decay.bits());
  say(build, rule, "backward", "grad_prior", prior.bits());
}

template <class Rule>
void run_rule(tensors const& x, char const* rule, tell say) {
  run_scan<Rule>(x, sequential{}, rule, "sequential", say);
  run_step<Rule>(x, rule, say);
  run_backward<Rule>(x, rule, say);
  if constexpr (chunked_form<Rule> != chunk_form::none) run_scan<Rule>(x, chunked{16}, rule, "chunked", say);
}

}  // namespace

#define PALIMPSA_TEST_JOIN_(a, b) a##b
#define PALIMPSA_TEST_JOIN(a, b) PALIMPSA_TEST_JOIN_(a, b)

extern "C" void PALIMPSA_TEST_JOIN(run_build_, PALIMPSA_TEST_BUILD)(tell say) {
  tensors const x;
  run_rule<Mamba2>(x, "Mamba2", say);
  run_rule<GatedDeltaNet>(x, "GatedDeltaNet", say);
  run_rule<Palimpsa>(x, "Palimpsa", say);
  run_rule<MesaNet>(x, "MesaNet", say);
#ifndef PALIMPSA_TEST_FEW
  run_rule<Longhorn>(x, "Longhorn", say);
  run_rule<ImplicitGatedDeltaNet>(x, "ImplicitGatedDeltaNet", say);
  run_rule<DiagonalKalman>(x, "DiagonalKalman", say);
#endif
}
