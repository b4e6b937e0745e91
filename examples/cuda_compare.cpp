// Lesson: the GPU is another tag, not another library. The same rule type, the same arguments, in device memory, give the same result
// up to the rounding of float32.

#include "cuda_compare.hpp"

#include <cmath>
#include <iostream>
#include <random>

#include "palimpsa/palimpsa.hpp"
#include "support/table.hpp"

namespace {

problem random_problem() {
  problem p{2, 300, 2, 4, 96, 64, {}, {}, {}, {}, {}, {}};
  std::mt19937 engine(3);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform;
  auto const fill = [&](std::vector<float>& x, std::int64_t n, auto draw) {
    x.resize(static_cast<std::size_t>(n));
    for (float& y : x) y = draw();
  };
  fill(p.q, p.B * p.T * p.HK * p.K, [&] { return normal(engine); });
  fill(p.k, p.B * p.T * p.HK * p.K, [&] { return normal(engine) / std::sqrt(96.0f); });
  fill(p.v, p.B * p.T * p.HV * p.V, [&] { return normal(engine); });
  fill(p.beta, p.B * p.T * p.HV * p.V, [&] { return uniform(engine); });
  fill(p.log_decay, p.B * p.T * p.HV, [&] { return uniform(engine) < 0.05f ? -50.0f : -0.1f * uniform(engine); });
  fill(p.prior, p.HV, [&] { return 0.5f + uniform(engine); });
  return p;
}

result scan_on_cpu(problem const& p) {
  std::size_t const states = static_cast<std::size_t>(p.B * p.HV * p.V * p.K);
  result r{std::vector<float>(p.v.size()), std::vector<float>(states), std::vector<float>(states)};
  palimpsa::scan_inputs<float> in;
  in.q = {p.q.data(), {p.B, p.T, p.HK, p.K}};
  in.k = {p.k.data(), {p.B, p.T, p.HK, p.K}};
  in.v = {p.v.data(), {p.B, p.T, p.HV, p.V}};
  in.beta = {p.beta.data(), {p.B, p.T, p.HV, p.V}};
  in.log_decay = {p.log_decay.data(), {p.B, p.T, p.HV}};
  in.prior = {p.prior.data(), {p.HV}};
  palimpsa::scan_outputs<float> to;
  to.out = {r.out.data(), {p.B, p.T, p.HV, p.V}};
  to.final_eta = {r.final_eta.data(), {p.B, p.HV, p.V, p.K}};
  to.final_evidence = {r.final_evidence.data(), {p.B, p.HV, p.V, p.K}};
  palimpsa::scan<palimpsa::Palimpsa>(palimpsa::sequential{}, in, to, palimpsa::allocate);
  return r;
}

double distance(std::vector<float> const& x, std::vector<float> const& y) {
  double gap = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const a = static_cast<double>(x[i]), b = static_cast<double>(y[i]);
    gap += (a - b) * (a - b), size += b * b;
  }
  return std::sqrt(gap / size);
}

}  // namespace

int main() {
  problem const p = random_problem();
  result gpu;
  std::string device;
  if (!scan_on_gpu(p, gpu, device)) {
    std::cout << "skipped: no CUDA device\n";
    return 0;
  }
  result const cpu = scan_on_cpu(p);
  std::cout << "Palimpsa, B 2, T 300, HK 2, HV 4, K 96, V 64, on " << device << " and on the CPU\n\n";
  // Each is within 5e-7·sqrt(T) of the right values.
  double const bound = 2 * 5e-7 * std::sqrt(300.0);
  double const gaps[] = {distance(gpu.out, cpu.out), distance(gpu.final_eta, cpu.final_eta),
                         distance(gpu.final_evidence, cpu.final_evidence)};
  example::table table({"tensor", "relative difference"});
  table.add({"out", example::text(gaps[0], "%.1e")});
  table.add({"final_eta", example::text(gaps[1], "%.1e")});
  table.add({"final_evidence", example::text(gaps[2], "%.1e")});
  table.print();
  example::claims claims;
  for (double const gap : gaps) claims.that(gap <= bound, "below " + example::text(bound, "%.1e") + ": " + example::text(gap, "%.1e"));
  return claims.exit_code();
}
