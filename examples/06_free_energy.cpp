// Lesson: every write minimises a free energy; the rules differ in which one.
//
// With R the precision remembered (1 where none is), m = R⁻¹αη the mean after forgetting, and a token (k, v, β), the
// mean μ of a Gaussian belief enters the variational free energy by
//
//     F(μ) = ½β(v - k·μ)² + ½(μ - m)ᵀR(μ - m)                                       docs/derivation.md, equation (2)
//
// MesaNet, DiagonalKalman and the implicit DeltaNet minimise it. The others minimise it with a simpler likelihood term:
// the slope of theirs is zero where they write, and the excess of F over its minimum is what the simplification costs
// there.

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "palimpsa/palimpsa.hpp"
#include "support/table.hpp"

using namespace palimpsa;
using Eigen::Matrix4d;
using Eigen::Vector4d;

namespace demo {

double const beta = 0.8, v = 1.3, prior = 0.5, log_decay = -0.3, alpha = std::exp(log_decay);
Vector4d const k(0.9, -0.4, 0.3, 1.1), earlier_key(0.5, 0.2, -1.0, 0.6), eta_before(0.4, 1.0, -0.7, 0.2);

struct written {
  Matrix4d R;        // precision remembered
  Vector4d m, mean;  // after forgetting, after the write
};

/// One step of a rule, V = 1 and K = 4, on a memory that is not empty.
template <class Rule> written write() {
  Matrix4d full = 2 * earlier_key * earlier_key.transpose() + eta_before * eta_before.transpose();
  Vector4d diagonal = full.diagonal(), eta = eta_before;
  auto const precision = [&](double share) -> Matrix4d {
    if (Rule::keeps_full) return prior * Matrix4d::Identity() + share * full;
    if (Rule::keeps_diagonal) return Vector4d(prior + share * diagonal.array()).asDiagonal();
    return Matrix4d::Identity();
  };
  written w{precision(alpha), {}, {}};
  w.m = w.R.llt().solve(alpha * eta);
  double out = 0;
  step_arguments<double> a;
  a.q = a.k = {k.data(), {1, 1, 1, 4}};
  a.v = {&v, {1, 1, 1, 1}};
  a.beta = {&beta, {1, 1, 1}};
  a.log_decay = {&log_decay, {1, 1, 1}};
  if (Rule::keeps_precision) a.prior = {&prior, {1}};
  a.eta = {eta.data(), {1, 1, 1, 4}};
  if (Rule::keeps_diagonal) a.evidence = {diagonal.data(), {1, 1, 1, 4}};
  if (Rule::keeps_full) a.evidence = {full.data(), {1, 1, 4, 4}};
  a.out = {&out, {1, 1, 1, 1}};
  step<Rule>(sequential{}, a, allocate);
  w.mean = precision(1).llt().solve(eta);
  return w;
}

int run() {
  example::table table({"rule", "its likelihood term", "slope where it writes", "excess of F"});
  double steepest = 0, least = 1e300;
  // `pull` is the derivative of the rule's likelihood term by the mean: β k (k·μ - v) where nothing is simplified.
  auto const row = [&](char const* name, char const* term, bool exact, written const& w, Vector4d const& pull) {
    auto const F = [&](Vector4d const& x) {
      return beta / 2 * std::pow(v - k.dot(x), 2) + (x - w.m).dot(w.R * (x - w.m)) / 2;
    };
    Vector4d const best = Matrix4d(w.R + beta * k * k.transpose()).llt().solve(w.R * w.m + beta * v * k);
    double const slope = (w.R * (w.mean - w.m) + pull).norm(), excess = F(w.mean) - F(best);
    steepest = (std::max)({steepest, slope, exact ? std::fabs(excess) : 0.0});
    if (!exact) least = (std::min)(least, excess);
    table.add({name, term, example::text(slope, "%.1e"), example::text(excess, "%.4f")});
  };
  auto const exact = [](written const& w) -> Vector4d { return beta * k * (k.dot(w.mean) - v); };
  auto const each = [](Vector4d const& x) -> Vector4d { return k.array().square() * x.array(); };  // k_j² x_j

  auto w = write<MesaNet>();
  row("MesaNet", "exact", true, w, exact(w));
  w = write<DiagonalKalman>();
  row("DiagonalKalman", "exact", true, w, exact(w));
  w = write<ImplicitGatedDeltaNet>();
  row("ImplicitGatedDeltaNet", "exact", true, w, exact(w));
  w = write<Palimpsa>();
  row("Palimpsa", "without cross terms", false, w, beta * (each(w.mean) - v * k));
  w = write<GatedDeltaNet>();
  row("GatedDeltaNet", "its tangent at m", false, w, beta * k * (k.dot(w.m) - v));
  w = write<Longhorn>();
  row("Longhorn", "tangent without cross terms, damped", false, w,
      beta / (1 + beta * k.squaredNorm()) * (each(w.m) - v * k));
  w = write<Mamba2>();
  row("Mamba2", "linear part only", false, w, -beta * v * k);
  table.print();

  example::claims claims;
  claims.that(steepest < 1e-14, "every rule writes where its own slope is zero, the exact ones at the minimum of F");
  claims.that(least > 1e-3, "every simplification costs free energy: at least " + example::text(least, "%.3f"));
  return claims.exit_code();
}

}  // namespace demo

int main() { return demo::run(); }
