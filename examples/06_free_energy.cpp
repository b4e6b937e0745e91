// Lesson: every write minimises a free energy; the rules differ in which one, and from one belief the price can be compared.
//
// A token (k, v, β) meets a Gaussian belief N(m, R⁻¹), and the mean μ of the new belief enters the variational free energy by
//
//     F(μ) = ½β(v - k·μ)² + ½(μ - m)ᵀR(μ - m)                                       docs/derivation.md, equation (2)
//
// MesaNet, DiagonalKalman and the implicit DeltaNet minimise it. The others minimise it with a simpler likelihood term: the slope
// of theirs is zero where they write.
//
// Rules that remember the precision have their own R, hence their own F: numbers of two rules then do not compare. So the write is
// done twice. From memories with a past the slope of each rule's own F is taken, which is to be zero. From the belief N(m, 1), where
// R = 1 for every rule, F is one function: its excess over its minimum is what a simplification costs, and what is left of the error
// v - k·m says on which side of the minimum it writes.

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "palimpsa/palimpsa.hpp"
#include "support/table.hpp"

using namespace palimpsa;
using Eigen::Matrix4d;
using Eigen::Vector4d;

namespace demo {

double const beta = 0.8, v = 1.3;
Vector4d const k(0.9, -0.4, 0.3, 1.1);

/// What a memory holds before the token. Rules take of the evidence what they keep.
struct start {
  double prior, log_decay;
  Vector4d eta;
  Matrix4d evidence;
};

struct written {
  Matrix4d R;        // precision remembered
  Vector4d m, mean;  // after forgetting, after the write
};

/// One step of a rule, V = 1 and K = 4.
template <class Rule> written write(start const& from) {
  double const alpha = std::exp(from.log_decay);
  Matrix4d full = from.evidence;
  Vector4d diagonal = full.diagonal(), eta = from.eta;
  auto const precision = [&](double share) -> Matrix4d {
    if (Rule::keeps_full) return from.prior * Matrix4d::Identity() + share * full;
    if (Rule::keeps_diagonal) return Vector4d(from.prior + share * diagonal.array()).asDiagonal();
    return Matrix4d::Identity();
  };
  written w{precision(alpha), {}, {}};
  w.m = w.R.llt().solve(alpha * eta);
  double out = 0;
  step_arguments<double> a;
  a.q = a.k = {k.data(), {1, 1, 1, 4}};
  a.v = {&v, {1, 1, 1, 1}};
  a.beta = {&beta, {1, 1, 1}};
  a.log_decay = {&from.log_decay, {1, 1, 1}};
  if (Rule::keeps_precision) a.prior = {&from.prior, {1}};
  a.eta = {eta.data(), {1, 1, 1, 4}};
  if (Rule::keeps_diagonal) a.evidence = {diagonal.data(), {1, 1, 1, 4}};
  if (Rule::keeps_full) a.evidence = {full.data(), {1, 1, 4, 4}};
  a.out = {&out, {1, 1, 1, 1}};
  step<Rule>(sequential{}, a, allocate);
  w.mean = precision(1).llt().solve(eta);
  return w;
}

/// The derivative of a rule's likelihood term by the mean: β k (k·μ - v) where nothing is simplified.
using pull = Vector4d (*)(written const&);

Vector4d each(Vector4d const& x) { return k.array().square() * x.array(); }  // k_j² x_j
Vector4d exact(written const& w) { return beta * k * (k.dot(w.mean) - v); }
Vector4d without_cross_terms(written const& w) { return beta * (each(w.mean) - v * k); }
Vector4d tangent(written const& w) { return beta * k * (k.dot(w.m) - v); }
Vector4d damped_tangent(written const& w) { return beta / (1 + beta * k.squaredNorm()) * (each(w.m) - v * k); }
Vector4d linear(written const&) { return -beta * v * k; }

double steepest = 0, largest_exact = 0, least_simplified = 1e300;

template <class Rule> void add_row(example::table& table, char const* name, char const* term, pull likelihood) {
  Vector4d const mean(0.3, 0.2, -0.4, 0.1), earlier_key(0.5, 0.2, -1.0, 0.6), eta(0.4, 1.0, -0.7, 0.2);
  Matrix4d const past = 2 * earlier_key * earlier_key.transpose() + eta * eta.transpose();
  written const own = write<Rule>({0.5, -0.3, eta, past}), same = write<Rule>({1, 0, mean, Matrix4d::Zero()});

  double const slope = (own.R * (own.mean - own.m) + likelihood(own)).norm();
  auto const F = [&](Vector4d const& x) { return beta / 2 * std::pow(v - k.dot(x), 2) + (x - mean).squaredNorm() / 2; };
  Vector4d const best = mean + beta * k * (v - k.dot(mean)) / (1 + beta * k.squaredNorm());
  double const excess = F(same.mean) - F(best);
  steepest = (std::max)(steepest, slope);
  if (likelihood == exact)
    largest_exact = (std::max)(largest_exact, std::fabs(excess));
  else
    least_simplified = (std::min)(least_simplified, excess);
  table.add({name, term, example::text(slope, "%.1e"), example::text(std::fabs(excess)), example::text(v - k.dot(same.mean), "%+.3f")});
}

int run() {
  example::table table({"rule", "its likelihood term", "slope of its own F", "excess of F from N(m, 1)", "error left of " +
                        example::text(v - k.dot(Vector4d(0.3, 0.2, -0.4, 0.1)), "%.3f")});
  add_row<MesaNet>(table, "MesaNet", "exact", exact);
  add_row<DiagonalKalman>(table, "DiagonalKalman", "exact", exact);
  add_row<ImplicitGatedDeltaNet>(table, "ImplicitGatedDeltaNet", "exact", exact);
  add_row<Longhorn>(table, "Longhorn", "tangent without cross terms, damped", damped_tangent);
  add_row<Palimpsa>(table, "Palimpsa", "without cross terms", without_cross_terms);
  add_row<GatedDeltaNet>(table, "GatedDeltaNet", "its tangent at m", tangent);
  add_row<Mamba2>(table, "Mamba2", "linear part only", linear);
  table.print();

  example::claims claims;
  claims.that(steepest < 1e-14, "every rule writes where the slope of its own F is zero: at most " + example::text(steepest, "%.1e"));
  claims.that(largest_exact < 1e-14, "from one belief the exact ones write the same mean, at the minimum of F");
  claims.that(least_simplified > 1e-3, "every simplification costs free energy: at least " + example::text(least_simplified, "%.3f"));
  return claims.exit_code();
}

}  // namespace demo

int main() { return demo::run(); }
