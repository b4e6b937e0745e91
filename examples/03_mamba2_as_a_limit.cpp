// Lesson: Mamba2 is Palimpsa with an immovable prior.
//
// Let the prior precision be p and the values arrive p times as large. Palimpsa's read is then
//
//     o = Σ_j p η_j q_j / (p + J_j) = Σ_j η_j q_j / (1 + J_j/p),
//
// where η is Mamba2's state: as p grows past everything the evidence J can reach, the importance stays at the prior,
// learning never slows down, and the read is Mamba2's. The error falls as 1/p: a slope of -1 on logarithmic axes.

#include <cmath>
#include <random>

#include "palimpsa/palimpsa.hpp"
#include "support/table.hpp"

using namespace palimpsa;

constexpr int T = 128, H = 2, K = 16, V = 8;

/// The reads of a rule with prior p, of values that are multiplied by `weight`.
template <class Rule> std::vector<double> reads(double p, double weight) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  auto const draw = [&](int n, double size) {
    std::vector<double> x;
    for (int i = 0; i < n; ++i) x.push_back(size * normal(random));
    return x;
  };
  auto const q = draw(T * H * K, 0.25), k = draw(T * H * K, 0.25), v = draw(T * H * V, weight);
  auto gate = draw(T * H, 0.05);
  for (double& g : gate) g = -std::fabs(g);
  std::vector<double> const prior(H, p);
  std::vector<double> out(T * H * V);
  scan_inputs<double> in;
  in.q = {q.data(), {1, T, H, K}};
  in.k = {k.data(), {1, T, H, K}};
  in.v = {v.data(), {1, T, H, V}};
  in.log_decay = {gate.data(), {1, T, H}};
  if (Rule::keeps_precision) in.prior = {prior.data(), {H}};
  scan_outputs<double> to;
  to.out = {out.data(), {1, T, H, V}};
  scan<Rule>(sequential{}, in, to, allocate);
  return out;
}

int main() {
  auto const limit = reads<Mamba2>(1, 1);
  std::cout << "relative error of Palimpsa(prior p, values times p) against Mamba2\n\n";
  example::table table({"prior p", "error", "error times p", "slope from the row above"});
  double sx = 0, sy = 0, sxx = 0, sxy = 0, n = 0, last = 0;
  for (int decade = 0; decade <= 9; ++decade) {
    double const p = std::pow(10.0, decade);
    auto const out = reads<Palimpsa>(p, p);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      difference += (out[i] - limit[i]) * (out[i] - limit[i]);
      size += limit[i] * limit[i];
    }
    double const error = std::sqrt(difference / size), y = std::log10(error);
    table.add({example::text(p, "%.0e"), example::text(error, "%.3e"), example::text(error * p, "%.4f"),
               decade == 0 ? "" : example::text(y - last, "%.4f")});
    last = y;
    if (decade < 3) continue;  // The evidence is not small beside the first priors: the limit has not begun there.
    n += 1, sx += decade, sy += y, sxx += decade * decade, sxy += decade * y;
  }
  table.print();
  double const slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
  example::claims claims;
  claims.that(std::fabs(slope + 1) < 1e-3, "from p = 1e3 the fitted slope is -1: " + example::text(slope, "%.6f"));
  return claims.exit_code();
}
