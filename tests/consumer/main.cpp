// A stranger's program: three tokens through Palimpsa, held against the recurrence written out for K = V = 1.
#include <cmath>
#include <iostream>

#include "palimpsa/palimpsa.hpp"
#include "palimpsa/version.hpp"

#if defined(EXPECT_EIGEN_OF_THE_PARENT) && !defined(EIGEN_OF_THE_PARENT)
#error "the parent's Eigen3::Eigen is not the one that palimpsa uses"
#endif

int main() {
  double const q[] = {1.0, -0.5, 2.0}, k[] = {0.5, 1.5, -1.0}, v[] = {1.0, -2.0, 0.25};
  double const beta[] = {0.7, 0.2, 1.3}, log_decay[] = {-0.1, -0.5, -0.2}, prior[] = {0.8};
  double out[3] = {};

  palimpsa::scan_inputs<double> in;
  in.q = {q, {1, 3, 1, 1}};
  in.k = {k, {1, 3, 1, 1}};
  in.v = {v, {1, 3, 1, 1}};
  in.beta = {beta, {1, 3, 1}};
  in.log_decay = {log_decay, {1, 3, 1}};
  in.prior = {prior, {1}};
  palimpsa::scan_outputs<double> result;
  result.out = {out, {1, 3, 1, 1}};
  palimpsa::scan<palimpsa::Palimpsa>(palimpsa::sequential{}, in, result, palimpsa::allocate);

  double eta = 0, evidence = 0;
  for (int t = 0; t < 3; ++t) {
    double const alpha = std::exp(log_decay[t]);
    eta = alpha * eta + beta[t] * v[t] * k[t];
    evidence = alpha * evidence + beta[t] * k[t] * k[t];
    double const right = q[t] * eta / (prior[0] + evidence);
    if (!(std::abs(out[t] - right) <= 1e-14 * std::abs(right))) {
      std::cerr << "token " << t << ": " << out[t] << " instead of " << right << '\n';
      return 1;
    }
  }
  std::cout << "palimpsa " << palimpsa::version.major << '.' << palimpsa::version.minor << '.' << palimpsa::version.patch
            << ": three tokens as by hand\n";
}
