// Lesson: the write is Bayes' rule, and it is two sums.
//
// A row of the memory is a belief about a linear map s: every cell j has a mean μ_j and a precision prior + J_j. A
// token says "s·k is v, give or take 1/sqrt(β)". Forgetting keeps the share α of what was accumulated on top of the
// prior; the evidence of the token is then added, and the read is the mean's answer to q with its variance:
//
//     J ← αJ + βk²      η ← αη + βv k      μ = η/(prior + J)      o = μ·q      w = Σ_j q_j²/(prior + J_j)
//
// Palimpsa keeps the cells independent. Here one step is done by hand, beside the library's, and once more as the
// correction of the mean that every rule of the family makes:
//
//     R = prior + αJ      m = αη/R      μ = m + (k/R)(βv - βk m)/(1 + βk²/R)

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>

#include "palimpsa/palimpsa.hpp"
#include "support/table.hpp"

using example::text;

int main() {
  double const prior = 2, beta = 4, value = 1.5, log_decay = -0.25;
  double const key[] = {0.6, -0.8}, query[] = {1, 0.5};
  double const eta_before[] = {0.9, 0.4}, evidence_before[] = {1, 3};

  // By hand.
  double const alpha = std::exp(log_decay);
  double eta[2], precision[2], mean[2], corrected[2], out = 0, variance = 0;
  for (int j = 0; j < 2; ++j) {
    eta[j] = alpha * eta_before[j] + beta * value * key[j];
    precision[j] = prior + alpha * evidence_before[j] + beta * key[j] * key[j];
    mean[j] = eta[j] / precision[j];
    double const k = key[j], R = prior + alpha * evidence_before[j], m = alpha * eta_before[j] / R;
    corrected[j] = m + k / R * (beta * value - beta * k * m) / (1 + beta * k * k / R);
    out += mean[j] * query[j];
    variance += query[j] * query[j] / precision[j];
  }

  // By the library: one row of a batch, one token, one head, V = 1, K = 2; the state is updated in place.
  double state_eta[] = {eta_before[0], eta_before[1]}, state_evidence[] = {evidence_before[0], evidence_before[1]};
  double read = 0, read_variance = 0;
  palimpsa::step_arguments<double> a;
  a.q = {query, {1, 1, 1, 2}};
  a.k = {key, {1, 1, 1, 2}};
  a.v = {&value, {1, 1, 1, 1}};
  a.beta = {&beta, {1, 1, 1}};
  a.log_decay = {&log_decay, {1, 1, 1}};
  a.prior = {&prior, {1}};
  a.eta = {state_eta, {1, 1, 1, 2}};
  a.evidence = {state_evidence, {1, 1, 1, 2}};
  a.out = {&read, {1, 1, 1, 1}};
  a.out_variance = {&read_variance, {1, 1, 1, 1}};
  palimpsa::step<palimpsa::Palimpsa>(palimpsa::sequential{}, a, palimpsa::allocate);

  std::cout << "prior " << prior << ", beta " << beta << ", value " << value << ", alpha " << text(alpha) << "\n\n";
  example::table cells(
      {"cell", "key", "mean before", "precision before", "mean by hand", "library", "precision by hand", "library"});
  double worst = 0, worst_correction = 0;
  auto const gap = [](double x, double right) { return std::fabs(x - right) / std::fabs(right); };
  for (int j = 0; j < 2; ++j) {
    double const library_precision = prior + state_evidence[j], library_mean = state_eta[j] / library_precision;
    double const before = prior + evidence_before[j];
    cells.add({std::to_string(j), text(key[j], "%.1f"), text(eta_before[j] / before), text(before), text(mean[j]),
               text(library_mean), text(precision[j]), text(library_precision)});
    worst = (std::max)({worst, gap(library_mean, mean[j]), gap(library_precision, precision[j])});
    worst_correction = (std::max)(worst_correction, gap(corrected[j], mean[j]));
  }
  cells.print();
  example::table reads({"read of q = (1, 0.5)", "by hand", "library"});
  reads.add({"mean", text(out), text(read)});
  reads.add({"variance", text(variance), text(read_variance)});
  reads.print();
  worst = (std::max)({worst, gap(read, out), gap(read_variance, variance)});

  double const bound = 8 * std::numeric_limits<double>::epsilon();
  example::claims claims;
  claims.that(worst <= bound, "by hand and by the library agree: largest relative difference " + text(worst, "%.1e"));
  claims.that(worst_correction <= bound,
              "the correction of the mean is the same write: " + text(worst_correction, "%.1e"));
  return claims.exit_code();
}
