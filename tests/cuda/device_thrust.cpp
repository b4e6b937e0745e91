// A second, independent check of long sequences: the recurrences of Mamba2, Palimpsa and Longhorn as an associative scan by Thrust on
// the GPU, in double, against the kernels.

#include "cuda/device_call.hpp"
#include "cuda/thrust_scan.hpp"

using namespace palimpsa_test;

namespace {

/// T tokens of one head, one row, K keys: the state after every token by Thrust, read as `read` says; compared with the kernel's out.
void check_against_thrust(kind write, std::int64_t T, std::vector<double> const& gates, std::uint64_t n) {
  recipe r;
  r.B = 1, r.T = T, r.HK = r.HV = 1, r.K = 24, r.V = 3, r.initial_state = false, r.scale = 1, r.log_decays = gates;
  problem const p = as_stored<float>(draw({write, palimpsa_test::gates::head, false}, r, n));
  INFO(p);
  gpu_outputs<float> const out(p);
  CHECK(gpu_scan(p.rule, gpu_inputs<float>(p), out) == 0);
  numbers right(p.v.size());
  std::vector<affine> steps(static_cast<std::size_t>(T)), evidence_steps(steps.size());
  auto const cell = [&](std::int64_t i, std::int64_t j) {
    for (std::int64_t t = 0; t < T; ++t) {
      auto const at = static_cast<std::size_t>(t);
      double const *const k = p.k.data() + t * r.K, beta = p.beta[at * 3 + static_cast<std::size_t>(i)],
                   v = p.v[at * 3 + static_cast<std::size_t>(i)], alpha = std::exp(p.log_decay[at]);
      double kk = 0;
      for (std::int64_t l = 0; l < r.K; ++l) kk += k[l] * k[l];
      double const g = write == kind::longhorn ? beta / (1 + beta * kk) : beta;
      steps[at] = {write == kind::longhorn ? alpha * (1 - g * k[j] * k[j]) : alpha, g * v * k[j]};
      evidence_steps[at] = {alpha, beta * k[j] * k[j]};
    }
    std::vector<affine> const eta = inclusive_scan_on_gpu(steps);
    std::vector<affine> const J = write == kind::palimpsa ? inclusive_scan_on_gpu(evidence_steps) : std::vector<affine>{};
    for (std::int64_t t = 0; t < T; ++t) {
      auto const at = static_cast<std::size_t>(t);
      double const precision = J.empty() ? 1 : p.prior[0] + J[at].b;  // from an empty state, the map's constant is the state
      right[at * 3 + static_cast<std::size_t>(i)] += eta[at].b / precision * p.q[at * static_cast<std::size_t>(r.K) + static_cast<std::size_t>(j)];
    }
  };
  for (std::int64_t i = 0; i < r.V; ++i)
    for (std::int64_t j = 0; j < r.K; ++j) cell(i, j);
  // One constant slow gate: α is rounded to float once, by up to 2⁻²⁵ just below 1, and the same error is taken T times over.
  double const gate_rounding = gates.size() == 1 ? static_cast<double>(T) * std::ldexp(1.0, -25) : 0;
  PALIMPSA_TEST_CLOSE("out", out.out.values(), right, plain_bound(T) + gate_rounding);
}

}  // namespace

// Fault it catches: an error common to the oracle and the kernels, which both go token by token; drift over 4096 tokens.
TEST_CASE("GPU: the recurrence is a scan") {
  PALIMPSA_TEST_NEEDS_GPU();
  for (kind write : {kind::mamba2, kind::palimpsa, kind::longhorn}) {
    check_against_thrust(write, 4096, {-0.05}, 11);
    check_against_thrust(write, 4096, {0, -0.001, -3, -50}, 12);
    check_against_thrust(write, 1000, {-0.001}, 13);
  }
}
