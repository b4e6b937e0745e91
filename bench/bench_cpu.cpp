// The CPU paths in one thread: B1 H4 K = V, float, CPU time. Every time stands beside what the machine can do, measured
// in the same process right before it, and beside its goal. Inputs are random, outputs poisoned and held against a scan
// in double.
//
//   bench_cpu --benchmark_repetitions=9 --benchmark_enable_random_interleaving=true
//   --benchmark_report_aggregates_only=true
//
// Counters (shares are rates to Google Benchmark, which writes /s or s after them: read none):
//   steps     cells × tokens a second
//   of_fma    the vector operations that the rule needs ÷ the machine's rate of fused multiply-adds
//   of_div    the divisions that it needs ÷ the machine's rate of divisions
//   of_hand   this rate ÷ that of the loop written by hand
//   of_eigen  the multiply-adds that a chunk needs, pairs of tokens up to the diagonal ÷ the rate of Eigen's product
//   of_dense  the same with all pairs of tokens, as whole products would take them
//   of_floor  products at Eigen's rate, then a division a cell, ÷ this time
//   forwards  this time ÷ that of the sequential forward
//   goal      for steps (sequential), for of_eigen (chunked), or what forwards may be (backward)

#include <benchmark/benchmark.h>

#include <Eigen/Core>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpu_by_hand.hpp"
#include "cpu_machine.hpp"
#include "cpu_problem.hpp"
#include "palimpsa/palimpsa.hpp"
#include "palimpsa/scan_backward.hpp"

namespace {

using benchmark::Counter;
using benchmark::State;

constexpr std::int64_t hand_keys = 64;  // the loops written by hand are compiled for one size

/// What a rule costs a cell and token: vector operations and divisions that no arrangement of its equation saves, and
/// its goal.
struct cost {
  double operations, divisions, goal;
  void (*by_hand)(bench::by_hand::arrays const&);
};

template <class Rule> constexpr cost cost_of{};
// αη, + uk, + ηq.
template <> constexpr cost cost_of<palimpsa::Mamba2>{3, 0, 12e9, bench::by_hand::mamba2<hand_keys>};
// αη, + wk, η·k, η·q.
template <> constexpr cost cost_of<palimpsa::GatedDeltaNet>{4, 0, 6e9, bench::by_hand::gated_delta_net<hand_keys>};
// αη, + uk, αJ, + βk², prior + J, ηq, the sum; ηq/(prior + J).
template <> constexpr cost cost_of<palimpsa::Palimpsa>{7, 1, 5e9, bench::by_hand::palimpsa<hand_keys>};
// m = αη, gk, v - (gk)m, m + k(..), + ηq.
template <> constexpr cost cost_of<palimpsa::Longhorn>{5, 0, 0, nullptr};
// R, αη, m, k·m, k²/R; k/R, μ, J (R + βk² - prior: one), η, + μq; 1/R.
template <> constexpr cost cost_of<palimpsa::DiagonalKalman>{10, 1, 0, nullptr};

Counter rate(double amount) { return Counter(amount, Counter::kIsIterationInvariantRate); }
/// CPU seconds an iteration over `seconds`.
Counter times(double seconds) { return Counter(seconds, Counter::kIsIterationInvariantRate | Counter::kInvert); }

/// A scan with its workspace, allocated outside the measured time.
template <class Rule, class Exec> struct forward {
  forward(bench::problem<float>& p, Exec exec)
      : how(exec), in(p.inputs<Rule>()), out(p.outputs()), scratch(palimpsa::scan_workspace<Rule>(exec, in)) {}
  void operator()() {
    palimpsa::scan<Rule>(how, in, out, palimpsa::workspace(scratch));
    benchmark::ClobberMemory();
  }
  Exec how;
  palimpsa::scan_inputs<float> in;
  palimpsa::scan_outputs<float> out;
  std::vector<std::byte> scratch;
};

template <class Rule> void check(State& state, bench::problem<float> const& p) {
  double const error = bench::relative_error(p.out, bench::right_output<Rule>(p.size));
  if (!(error <= bench::error_bound(p.size)))
    state.SkipWithError(("wrong output: error " + std::to_string(error)).c_str());
}

bench::by_hand::arrays arrays_of(bench::problem<float>& p) {
  return {p.q.data(),     p.k.data(),   p.v.data(),    p.beta.data(),      p.log_decay.data(),
          p.prior.data(), p.out.data(), p.size.tokens, bench::sizes::heads};
}

/// Shares of the machine that a rule takes elementwise.
template <class Rule> void count_elements(State& state, bench::sizes size) {
  double const steps = size.element_steps(), divisions = cost_of<Rule>.divisions;
  state.counters["steps"] = rate(steps);
  if (cost_of<Rule>.operations > 0)
    state.counters["of_fma"] = rate(steps * cost_of<Rule>.operations / bench::fma_rate());
  if (divisions > 0) state.counters["of_div"] = rate(steps * divisions / bench::division_rate());
}

template <class Rule> void sequential(State& state, bench::sizes size) {
  bench::problem<float> p(size);
  if (cost_of<Rule>.by_hand != nullptr && size.keys == hand_keys)
    state.counters["of_hand"] = rate(bench::fewest_seconds(5, [&] { cost_of<Rule>.by_hand(arrays_of(p)); }));
  count_elements<Rule>(state, size);
  if (cost_of<Rule>.goal > 0) state.counters["goal"] = cost_of<Rule>.goal;
  p = bench::problem<float>(size);
  forward<Rule, palimpsa::sequential> scan(p, {1});
  for (auto _ : state) scan();
  check<Rule>(state, p);
}

template <class Rule> void by_hand(State& state, bench::sizes size) {
  bench::problem<float> p(size);
  count_elements<Rule>(state, size);
  for (auto _ : state) {
    cost_of<Rule>.by_hand(arrays_of(p));
    benchmark::ClobberMemory();
  }
  check<Rule>(state, p);
}

/// Multiply-adds of the chunked form. Of a product of two tokens, t and s, `masked` of all pairs count.
template <class Rule> double chunk_products(bench::sizes size, std::int64_t chunk, double masked) {
  using palimpsa::chunk_form;
  constexpr chunk_form form = palimpsa::chunked_form<Rule>;
  auto const C = static_cast<double>(chunk), K = static_cast<double>(size.keys), V = K, pairs = masked * C * C;
  double each = 2 * C * K * V;                                      // the state and its read; for Palimpsa two states
  if (form != chunk_form::divided_read) each += pairs * (K + V);    // scores and their read
  if (form == chunk_form::wy) each += C * K * V + pairs * (K + V);  // the same again for the correction
  return each * static_cast<double>(size.tokens / chunk * bench::sizes::heads);
}

template <class Rule> void chunked(State& state, bench::sizes size, std::int64_t chunk) {
  bench::problem<float> p(size);
  forward<Rule, palimpsa::sequential> token_by_token(p, {1});
  state.counters["forwards"] = times(bench::fewest_seconds(3, [&] { token_by_token(); }));
  state.counters["steps"] = rate(size.element_steps());
  double const eigen = bench::eigen_rate(), triangle = 0.5 + 0.5 / static_cast<double>(chunk);
  double const products = chunk_products<Rule>(size, chunk, triangle) / eigen;
  state.counters["of_eigen"] = rate(products);
  state.counters["of_dense"] = rate(chunk_products<Rule>(size, chunk, 1) / eigen);
  // Palimpsa's read divides cell by cell: its floor is the divisions after the products.
  if (cost_of<Rule>.divisions > 0)
    state.counters["of_floor"] =
        rate(products + size.element_steps() * cost_of<Rule>.divisions / bench::division_rate());
  else
    state.counters["goal"] = 0.6;
  p = bench::problem<float>(size);
  forward<Rule, palimpsa::chunked> scan(p, {chunk, 1});
  for (auto _ : state) scan();
  check<Rule>(state, p);
}

template <class Rule> void backward(State& state, bench::sizes size) {
  bench::problem<float> p(size);
  bench::gradients g(p);
  forward<Rule, palimpsa::sequential> scan(p, {1});
  state.counters["forwards"] = times(bench::fewest_seconds(5, [&] { scan(); }));
  state.counters["steps"] = rate(size.element_steps());
  state.counters["goal"] = 4;
  palimpsa::checkpointed const how{64, 1};
  palimpsa::scan_inputs<float> const in = p.inputs<Rule>();
  palimpsa::scan_gradients<float> const down = g.outputs<Rule>(size);
  palimpsa::scan_cotangents<float> up;
  up.grad_out = {p.grad_out.data(), {1, size.tokens, bench::sizes::heads, size.keys}};
  std::vector<std::byte> scratch(palimpsa::scan_backward_workspace<Rule>(how, in));
  for (auto _ : state) {
    palimpsa::scan_backward<Rule>(how, in, up, down, palimpsa::workspace(scratch));
    benchmark::ClobberMemory();
  }
  if (!g.written<Rule>()) state.SkipWithError("a gradient was not written");
}

template <class F> void add(std::string const& name, F f) {
  benchmark::RegisterBenchmark(name.c_str(), f)
      ->Unit(benchmark::kMillisecond)
      ->ComputeStatistics("min", [](std::vector<double> const& x) { return *std::min_element(x.begin(), x.end()); })
      ->ComputeStatistics("max", [](std::vector<double> const& x) { return *std::max_element(x.begin(), x.end()); });
}

std::string text(bench::sizes size) {
  return "/T" + std::to_string(size.tokens) + "/K" + std::to_string(size.keys) +
         (size.gate < -1 ? "/gate-3" : "/gate-0.05");
}

/// The paths that every rule has.
template <class Rule> void add_rule(std::string const& rule, bench::sizes size) {
  add("sequential/" + rule + text(size), [=](State& s) { sequential<Rule>(s, size); });
  add("backward/" + rule + text(size), [=](State& s) { backward<Rule>(s, size); });
}

template <class Rule> void add_by_hand(std::string const& rule, bench::sizes size) {
  add("by_hand/" + rule + text(size), [=](State& s) { by_hand<Rule>(s, size); });
}

template <class Rule> void add_chunked(std::string const& rule, bench::sizes size) {
  for (std::int64_t chunk : {64, 128})
    add("chunked" + std::to_string(chunk) + "/" + rule + text(size), [=](State& s) { chunked<Rule>(s, size, chunk); });
}

void add_all() {
  using namespace palimpsa;
  for (double gate : {-0.05, -3.0}) {
    bench::sizes const size{4096, hand_keys, gate};
    add_by_hand<Mamba2>("Mamba2", size);
    add_by_hand<GatedDeltaNet>("GatedDeltaNet", size);
    add_by_hand<Palimpsa>("Palimpsa", size);
    add_rule<Mamba2>("Mamba2", size);
    add_rule<GatedDeltaNet>("GatedDeltaNet", size);
    add_rule<Palimpsa>("Palimpsa", size);
    add_rule<Longhorn>("Longhorn", size);
    add_rule<DiagonalKalman>("DiagonalKalman", size);
    add_rule<MesaNet>("MesaNet", size);
    add_chunked<Mamba2>("Mamba2", size);
    add_chunked<GatedDeltaNet>("GatedDeltaNet", size);
    add_chunked<Palimpsa>("Palimpsa", size);
  }
  for (std::int64_t keys : {128, 256}) {
    bench::sizes const size{4096, keys, -0.05};
    add("sequential/Mamba2" + text(size), [=](State& s) { sequential<Mamba2>(s, size); });
    add_chunked<Mamba2>("Mamba2", size);
    add("sequential/GatedDeltaNet" + text(size), [=](State& s) { sequential<GatedDeltaNet>(s, size); });
    add_chunked<GatedDeltaNet>("GatedDeltaNet", size);
  }
}

// What the machine can do, to read the shares against.
void machine(State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(bench::fma_rate());
  state.counters["fma"] = bench::fma_rate();
  state.counters["division"] = bench::division_rate();
  state.counters["eigen"] = bench::eigen_rate();
}

[[maybe_unused]] bool const added = [] {
  // Where OpenMP is on, Eigen starts threads of its own.
  Eigen::setNbThreads(1);
  add("machine", machine);
  add_all();
  return true;
}();

}  // namespace
