// Lesson: float32 is enough for the state, and the error of a run says so.
//
// Every token rounds the state a few times. Gates forget old rounding together with old evidence, and a write that
// corrects also corrects what rounding did, so the error of a read hardly grows with the number of tokens n; only a
// rule that adds and forgets nothing piles it up, and that no faster than √n. Each rule runs in float32 and in float64
// on the same inputs: the relative error ‖x - right‖/‖right‖ of the last 16 reads and of the final state, beside the
// bound min(5e-7 √n, 1e-5).

#include <cmath>
#include <random>
#include <vector>

#include "palimpsa/palimpsa.hpp"
#include "support/table.hpp"

using namespace palimpsa;

constexpr int H = 2, K = 64, V = 64, longest = 4096;

std::vector<float> normal_numbers(int n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x;
  for (int i = 0; i < n; ++i) x.push_back(normal(random));
  return x;
}

template <class Scalar> struct results { std::vector<Scalar> reads, eta; };

/// n tokens of a rule, with unit keys, β in (0, 1) and gates around -0.02, in the given type.
template <class Rule, class Scalar> results<Scalar> run(int n) {
  auto const cast = [](std::vector<float> const& x) { return std::vector<Scalar>(x.begin(), x.end()); };
  auto keys = normal_numbers(longest * H * K, 1), gates = normal_numbers(longest * H, 2),
       weights = normal_numbers(longest * H, 3);
  for (float& k : keys) k /= std::sqrt(float(K));
  for (float& g : gates) g = -0.02f * g * g;
  for (float& b : weights) b = 1 / (1 + std::exp(b));
  auto const q = cast(normal_numbers(longest * H * K, 4)), k = cast(keys), v = cast(normal_numbers(longest * H * V, 5));
  auto const gate = cast(gates), beta = cast(weights), prior = std::vector<Scalar>(H, Scalar(1));
  std::vector<Scalar> out(std::size_t(n) * H * V), eta(H * V * K);
  scan_inputs<Scalar> in;
  in.q = {q.data(), {1, n, H, K}};
  in.k = {k.data(), {1, n, H, K}};
  in.v = {v.data(), {1, n, H, V}};
  in.beta = {beta.data(), {1, n, H}};
  if (Rule::forget_type::scope == gate_scope::head) in.log_decay = {gate.data(), {1, n, H}};
  if (Rule::keeps_precision) in.prior = {prior.data(), {H}};
  scan_outputs<Scalar> to;
  to.out = {out.data(), {1, n, H, V}};
  to.final_eta = {eta.data(), {1, H, V, K}};
  scan<Rule>(sequential{}, in, to, allocate);
  if (n > 16) out.erase(out.begin(), out.end() - 16 * H * V);
  return {out, eta};
}

double error(std::vector<float> const& x, std::vector<double> const& right) {
  double gap = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    gap += std::pow(x[i] - right[i], 2);
    size += right[i] * right[i];
  }
  return std::sqrt(gap / size);
}

double worst = 0;  // error over bound

template <class Rule> void add_row(example::table& table, char const* name) {
  std::vector<std::string> cells{name};
  for (int n : {1, 16, 256, longest}) {
    auto const x = run<Rule, float>(n);
    auto const right = run<Rule, double>(n);
    double const read = error(x.reads, right.reads), state = error(x.eta, right.eta);
    worst = (std::max)(worst, (std::max)(read, state) / (std::min)(5e-7 * std::sqrt(n), 1e-5));
    cells.push_back(example::text(read, "%.1e"));
    cells.push_back(example::text(state, "%.1e"));
  }
  table.add(cells);
}

int main() {
  example::table table({"rule", "reads, n = 1", "state", "n = 16", "state", "n = 256", "state", "n = 4096", "state"});
  add_row<LinearAttention>(table, "LinearAttention");
  add_row<Mamba2>(table, "Mamba2");
  add_row<Longhorn>(table, "Longhorn");
  add_row<DeltaNet>(table, "DeltaNet");
  add_row<GatedDeltaNet>(table, "GatedDeltaNet");
  add_row<Palimpsa>(table, "Palimpsa");
  add_row<DiagonalKalman>(table, "DiagonalKalman");
  add_row<MesaNet>(table, "MesaNet");
  table.print();
  example::claims claims;
  claims.that(worst < 1, "every error is within its bound: at most " + example::text(worst, "%.2f") + " of it");
  return claims.exit_code();
}
