// Lesson: a rule of your own is a policy of a few lines, and every path follows from it. Required are the members an
// axis asks for (docs/policies.md): a gate that never closes below a floor, and a gain more careful than the exact one,
//     α = 1/8 + 7/8 exp(log_decay)      s_j = 1/(1 + own_j + Σ_j own_j),  own_j = βk_j²/R_j.
// The rest is convenience: paths and types held against a plain loop in double, gradients against differences.

#include <cmath>
#include <iostream>
#include <random>

#include "palimpsa/io/verify.hpp"
#include "palimpsa/numerical_gradient.hpp"

using namespace palimpsa;

struct floored_gate {
  static constexpr gate_scope scope = gate_scope::head;  // log_decay [B,T,HV]
  PALIMPSA_HD static auto retain(auto log_decay) { return 0.125f + 0.875f * std::exp(log_decay); }
  PALIMPSA_HD static auto slope(auto, auto alpha) { return alpha - 0.125f; }  // ∂α/∂log_decay
};

struct careful_gain {
  static constexpr bool sees_all = true;  // it needs the sum over the keys
  PALIMPSA_HD static auto at(auto lanes, auto own, auto all) { return lanes.reciprocal(1 + own + all); }
  PALIMPSA_HD static auto slope(auto lanes, auto own, auto all) {  // ∂s/∂own, ∂s/∂all
    auto const s = at(lanes, own, all);
    return slopes<decltype(own)>{-(s * s), -(s * s)};
  }
};

using CarefulKalman = rule<memory::diagonal, evidence::full, careful_gain, floored_gate>;
constexpr std::size_t T = 40, K = 5;

/// Reads of one head with V = 1, from the equations, carrying mean and importance instead of the library's η and J.
std::vector<double> plain_loop(io::case_file const& given) {
  std::vector<double> mean(K), importance(K, given.prior->values[0]), R(K), own(K), out(T);
  for (std::size_t t = 0; t < T; ++t) {
    double const *const k = &given.k->values[t * K], *const q = &given.q->values[t * K];
    double const alpha = 0.125 + 0.875 * std::exp(given.log_decay->values[t]), beta = given.beta->values[t];
    double error = given.v->values[t], all = 0;
    for (std::size_t j = 0; j < K; ++j) {
      R[j] = alpha * importance[j] + (1 - alpha) * given.prior->values[0];
      mean[j] *= alpha * importance[j] / R[j];
      error -= k[j] * mean[j];
      all += own[j] = beta * k[j] * k[j] / R[j];
    }
    for (std::size_t j = 0; j < K; ++j) {
      mean[j] += beta * k[j] / R[j] * error / (1 + own[j] + all);
      importance[j] = R[j] + beta * k[j] * k[j];
      out[t] += mean[j] * q[j];
    }
  }
  return out;
}

int main() {
  std::mt19937 random(5);
  auto const tensor = [&](std::vector<std::int64_t> shape, std::size_t n, float low, float high) {
    io::case_tensor<double> x{shape, std::vector<double>(n), io::dtype::f64};
    for (double& number : x.values) number = std::uniform_real_distribution<float>(low, high)(random);
    return x;
  };
  io::case_file given;
  given.q = tensor({1, T, 1, K}, T * K, -1, 1);
  given.k = tensor({1, T, 1, K}, T * K, -1, 1);
  given.v = given.out = tensor({1, T, 1, 1}, T, -1, 1);
  given.beta = tensor({1, T, 1}, T, 0, 3);
  given.log_decay = tensor({1, T, 1}, T, -4, 0);
  given.prior = tensor({1}, 1, 0.5f, 2);
  given.out->values = plain_loop(given);
  std::vector<io::case_report> reports{io::verify_case<CarefulKalman>(given)};
  given.grad_out = tensor({1, T, 1, 1}, T, -1, 1);
  io::case_inputs<double> inputs(given);
  double const gap = worst_gradient_error<CarefulKalman>(inputs.arguments(), inputs.cotangents());
  given = io::completed_case<CarefulKalman>(given);
  reports.push_back(io::verify_case<CarefulKalman>(given, {io::dtype::f32, io::scan_path::step}));
  io::print_table(std::cout, reports);
  std::cout << "largest relative difference of a gradient to central differences: " << gap << '\n';
  return io::count(reports).failed == 0 && gap < 1e-8 ? 0 : 1;
}
