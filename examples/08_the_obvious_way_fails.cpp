// Lesson: four shortcuts that are right on paper lose everything in float32; the library takes none of them.
//
//     decay      from token s to token t as exp(c_t - c_s), c the running sum of log_decay     → a product of gates
//     old state  for the gate's gradient as (η_t - u k)/α                                      → kept, or computed again
//     system     (I + L) x = b of repeated keys by x = (I - L)(I + L²)(I + L⁴)... b            → substitution
//     curvature  dJ = -p η/(prior + J)² with the square formed                                 → p (1/I)(η (1/I))
//
// Each is computed both ways in float32 and held against float64.

#include <Eigen/Dense>
#include <cmath>
#include <limits>

#include "palimpsa/palimpsa.hpp"
#include "palimpsa/scan_backward.hpp"
#include "support/table.hpp"

using namespace palimpsa;
using Eigen::MatrixXd;
using Eigen::MatrixXf;

std::string number(double x) { return example::text(x, "%.1e"); }
double gap(double x, double right) { return std::fabs(x - right) / std::fabs(right); }

/// Decay over `quiet` tokens at -0.01 each, after one token with a strong gate. {by sums, by products}: errors.
std::pair<double, double> decay(float strong, int quiet) {
  float sum = strong, product = 1;
  for (int t = 0; t < quiet; ++t) {
    sum += -0.01f;
    product *= std::exp(-0.01f);
  }
  double const right = std::exp(double(-0.01f) * quiet);
  return {gap(std::exp(sum - strong), right), gap(product, right)};
}

/// d out_2/d log_decay_2 of Mamba2, two tokens, K = V = 1. {by division, by the library}: errors.
std::pair<double, double> gate_gradient(float log_decay) {
  float const k[] = {0.7f, 0.9f}, v[] = {1.3f, -0.8f}, q[] = {1, 1.1f}, gate[] = {0, log_decay}, pull[] = {0, 1};
  float gradient[2];
  scan_inputs<float> in;
  in.q = {q, {1, 2, 1, 1}};
  in.k = {k, {1, 2, 1, 1}};
  in.v = {v, {1, 2, 1, 1}};
  in.log_decay = {gate, {1, 2, 1}};
  scan_cotangents<float> up;
  up.grad_out = {pull, {1, 2, 1, 1}};
  scan_gradients<float> down;
  down.grad_log_decay = {gradient, {1, 2, 1}};
  scan_backward<Mamba2>(checkpointed{}, in, up, down, allocate);

  float const alpha = std::exp(log_decay), eta = alpha * (v[0] * k[0]) + v[1] * k[1];
  float const divided = alpha * ((eta - v[1] * k[1]) / alpha) * q[1];
  double const right = std::exp(double(log_decay)) * v[0] * double(k[0]) * q[1];
  return {gap(divided, right), gap(gradient[1], right)};
}

/// A chunk of n tokens with the same unit key, β = 0.9. {by squaring, by substitution}: errors of the solution.
std::pair<double, double> triangle(int n) {
  MatrixXf const one = MatrixXf::Identity(n, n);
  MatrixXf const L = MatrixXf::Constant(n, n, 0.9f).triangularView<Eigen::StrictlyLower>(), system = one + L;
  MatrixXd const b = Eigen::VectorXd::LinSpaced(n, 1, 2), wide = system.cast<double>();
  MatrixXf inverse = one - L, power = L * L;
  for (int reach = 2; reach < n; reach *= 2, power = MatrixXf(power * power)) inverse = inverse * (one + power);
  MatrixXd const right = wide.triangularView<Eigen::Lower>().solve(b);
  MatrixXf const squared = inverse * b.cast<float>();
  MatrixXf const substituted = system.triangularView<Eigen::Lower>().solve(MatrixXf(b.cast<float>()));
  auto const error = [&](MatrixXf const& x) { return (x.cast<double>() - right).norm() / right.norm(); };
  return {error(squared), error(substituted)};
}

int main() {
  double const lost = 1e-3, kept = 1e-6;
  bool fails = true, holds = true;
  example::table table({"what", "where", "the obvious way", "the way taken"});
  auto const row = [&](char const* what, std::string const& where, std::pair<double, double> errors, bool hard) {
    table.add({what, where, number(errors.first), number(errors.second)});
    fails = fails && (!hard || !(errors.first < lost));
    holds = holds && errors.second < kept;
  };
  float const infinity = std::numeric_limits<float>::infinity();
  row("decay", "after a gate of -1", decay(-1, 8), false);
  row("decay", "after a gate of -1000", decay(-1000, 8), false);
  row("decay", "after a gate of -100000", decay(-1e5f, 8), true);
  row("decay", "after a gate of -inf", decay(-infinity, 8), true);
  for (float g : {-1.0f, -4.0f, -10.0f, -20.0f})
    row("gate gradient", "log_decay " + example::text(g, "%.0f"), gate_gradient(g), g < -15);
  for (int n : {8, 32, 64}) row("system", std::to_string(n) + " equal keys", triangle(n), n > 8);
  float const I = 1e-25f, eta = 2e-25f, r = 1 / I;
  row("curvature", "prior 1e-25",
      {gap(eta * (r * r), double(eta) / double(I) / double(I)),
       gap(r * (eta * r), double(eta) / double(I) / double(I))},
      true);
  table.print();
  example::claims claims;
  claims.that(fails, "the obvious way has an error above 1e-3 where it is hard, or is no number");
  claims.that(holds, "the way taken stays below 1e-6 everywhere");
  return claims.exit_code();
}
