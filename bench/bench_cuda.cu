// The GPU against its own ceilings: the one-token step and the sequential scan, each beside the time that its bytes or operations take
// at the rates measured first (copy bandwidth, fused multiply-adds, reciprocals).
//
//     bench_cuda [--benchmark_filter=...]
//
// Times are CUDA events around each call (median of the repetitions with --benchmark_repetitions); inputs are random, several sets are
// used in turn so that the L2 cache does not hold them, outputs hold NaN beforehand and are checked after.

#include <benchmark/benchmark.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "palimpsa/cuda/scan.cuh"
#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"

namespace {

using storage_type = __nv_bfloat16;

void must(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

template <class T>
struct device_array {
  explicit device_array(std::int64_t n) : count(n) { must(cudaMalloc(&data, static_cast<std::size_t>(n) * sizeof(T))); }
  device_array(device_array const&) = delete;
  device_array& operator=(device_array const&) = delete;
  ~device_array() { static_cast<void>(cudaFree(data)); }
  T* data = nullptr;
  std::int64_t count;
};

/// A uniform number in [-1, 1) from an index: a hash, so that any size is filled at once.
__device__ float noise(std::uint64_t i) {
  i = (i + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  i = (i ^ (i >> 27)) * 0x94d049bb133111ebu;
  return static_cast<float>(static_cast<std::int32_t>(i >> 32)) * 0x1p-31f;
}

template <class T>
__global__ void fill(T* to, std::int64_t n, float size, float centre, std::uint64_t seed) {
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < n; i += std::int64_t{gridDim.x} * blockDim.x)
    to[i] = palimpsa::storage<T>::store(centre + size * noise(static_cast<std::uint64_t>(i) + seed * 0x100000001b3u));
}

template <class T>
std::unique_ptr<device_array<T>> random_array(std::int64_t n, float size, float centre, std::uint64_t seed) {
  auto a = std::make_unique<device_array<T>>(n);
  fill<<<1024, 256>>>(a->data, n, size, centre, seed);
  must(cudaGetLastError());
  return a;
}

/// Milliseconds of f on the default stream, by events.
template <class F>
float milliseconds(F f) {
  cudaEvent_t start, stop;
  must(cudaEventCreate(&start)), must(cudaEventCreate(&stop));
  must(cudaEventRecord(start));
  f();
  must(cudaEventRecord(stop));
  must(cudaEventSynchronize(stop));
  float ms = 0;
  must(cudaEventElapsedTime(&ms, start, stop));
  static_cast<void>(cudaEventDestroy(start)), static_cast<void>(cudaEventDestroy(stop));
  return ms;
}

template <bool Reciprocals>
__global__ void arithmetic(float* out, float x, int rounds) {
  float a[8];
  for (int i = 0; i < 8; ++i) a[i] = x + static_cast<float>(threadIdx.x + i);
  for (int r = 0; r < rounds; ++r)
    for (int i = 0; i < 8; ++i) {
      if constexpr (Reciprocals)
        a[i] = fmaf(palimpsa::cuda::approximate_reciprocal(a[i]), x, 0.5f);
      else
        a[i] = fmaf(a[i], x, 0.5f);
    }
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += a[i];
  if (sum == -1.0f) *out = sum;
}

/// What the card gives, measured once.
struct ceilings {
  double bytes_per_s, fma_per_s, reciprocals_per_s;

  ceilings() {
    std::int64_t const n = std::int64_t{1} << 31;
    device_array<char> from(n), to(n);
    device_array<float> sink(1);
    must(cudaMemset(from.data, 1, static_cast<std::size_t>(n)));
    bytes_per_s = 2.0 * static_cast<double>(n) / best([&] { must(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(n), cudaMemcpyDeviceToDevice)); });
    int constexpr rounds = 20000, blocks = 132 * 8, threads = 256;
    double const operations = 8.0 * rounds * blocks * threads;
    fma_per_s = operations / best([&] { arithmetic<false><<<blocks, threads>>>(sink.data, 0.999f, rounds); });
    reciprocals_per_s = operations / 8 / best([&] { arithmetic<true><<<blocks, threads>>>(sink.data, 1.5f, rounds / 8); });
    cudaDeviceProp card;
    must(cudaGetDeviceProperties(&card, 0));
    std::printf("%s: copy %.2f TB/s, %.1f T fused multiply-adds/s, %.2f T reciprocals/s\n", card.name, bytes_per_s * 1e-12,
                fma_per_s * 1e-12, reciprocals_per_s * 1e-12);
  }

  template <class F>
  static double best(F f) {
    double least = 1e9;
    for (int i = 0; i < 7; ++i) least = (std::min)(least, static_cast<double>(milliseconds(f)) * 1e-3);
    return least;
  }
};

ceilings const& card() {
  static ceilings const measured;
  return measured;
}

struct shape {
  std::int64_t B, T, HK, HV, K, V;
  bool beta_per_channel;
};

/// One set of a call's tensors.
template <class Rule>
struct tensors {
  tensors(shape s, float log_decay, std::uint64_t seed)
      : q(random_array<storage_type>(s.B * s.T * s.HK * s.K, 0.2f, 0, seed)),
        k(random_array<storage_type>(s.B * s.T * s.HK * s.K, 0.2f, 0, seed + 1)),
        v(random_array<storage_type>(s.B * s.T * s.HV * s.V, 1, 0, seed + 2)),
        beta(random_array<float>(s.B * s.T * s.HV * (s.beta_per_channel ? s.V : 1), 0.4f, 0.5f, seed + 3)),
        gate(random_array<float>(s.B * s.T * s.HV, log_decay * 0.5f, log_decay, seed + 4)),
        prior(random_array<float>(s.HV, 0, 1, seed)),
        out(s.B * s.T * s.HV * s.V) {
    must(cudaMemset(out.data, 0xff, static_cast<std::size_t>(out.count) * sizeof(storage_type)));
  }
  std::unique_ptr<device_array<storage_type>> q, k, v;
  std::unique_ptr<device_array<float>> beta, gate, prior;
  device_array<storage_type> out;

  palimpsa::view<float const> beta_view(shape s) const {
    if (s.beta_per_channel) return {beta->data, {s.B, s.T, s.HV, s.V}};
    return {beta->data, {s.B, s.T, s.HV}};
  }
  palimpsa::view<float const> prior_view(shape s) const {
    if (!Rule::keeps_precision) return {};
    return {prior->data, {s.HV}};
  }
  palimpsa::scan_inputs<storage_type> inputs(shape s) const {
    palimpsa::scan_inputs<storage_type> in;
    in.q = {q->data, {s.B, s.T, s.HK, s.K}}, in.k = {k->data, {s.B, s.T, s.HK, s.K}}, in.v = {v->data, {s.B, s.T, s.HV, s.V}};
    in.beta = beta_view(s), in.log_decay = {gate->data, {s.B, s.T, s.HV}}, in.prior = prior_view(s);
    return in;
  }
  bool finite() const {
    std::vector<storage_type> host(static_cast<std::size_t>((std::min)(out.count, std::int64_t{1} << 22)));
    must(cudaMemcpy(host.data(), out.data + (out.count - static_cast<std::int64_t>(host.size())), host.size() * sizeof(storage_type), cudaMemcpyDeviceToHost));
    return std::all_of(host.begin(), host.end(), [](storage_type x) { return std::isfinite(__bfloat162float(x)); });
  }
};

/// Floors of a scan: bytes in and out once; `fma` and `reciprocals` a state element and token.
struct cost {
  double fma, reciprocals;
};

template <class Rule>
void scan(benchmark::State& state, shape s, float log_decay, cost each, palimpsa::cuda::sequential const& how = {}) {
  std::vector<std::unique_ptr<tensors<Rule>>> sets;
  for (std::uint64_t i = 0; i < 3; ++i) sets.push_back(std::make_unique<tensors<Rule>>(s, log_decay, 10 * i));
  std::size_t const bytes = palimpsa::scan_workspace<Rule>(how, sets[0]->inputs(s));
  device_array<std::byte> scratch(static_cast<std::int64_t>(bytes) + 1);
  std::size_t turn = 0;
  for (auto _ : state) {
    tensors<Rule> const& t = *sets[turn++ % sets.size()];
    palimpsa::scan_outputs<storage_type> out;
    out.out = {t.out.data, {s.B, s.T, s.HV, s.V}};
    state.SetIterationTime(milliseconds([&] { palimpsa::scan<Rule>(how, t.inputs(s), out, {scratch.data, bytes}); }) * 1e-3);
  }
  if (!sets[0]->finite()) state.SkipWithError("outputs are not finite");
  double const steps = static_cast<double>(s.B * s.T * s.HV * s.K * s.V);
  double const moved = static_cast<double>(s.B * s.T) * (2.0 * 2 * static_cast<double>(s.HK * s.K) + 2.0 * 2 * static_cast<double>(s.HV * s.V) +
                                                         4.0 * static_cast<double>(s.HV * (s.beta_per_channel ? s.V : 1)));
  double const floor = (std::max)({steps * each.fma / card().fma_per_s, steps * each.reciprocals / card().reciprocals_per_s,
                                   moved / card().bytes_per_s});
  state.counters["floor_ms"] = floor * 1e3;
  state.counters["floor/time"] = benchmark::Counter(floor, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["G_element_steps/s"] = benchmark::Counter(steps * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

/// A step of Palimpsa: `calls` of them back to back, as an engine makes them.
void step(benchmark::State& state, shape s, int calls) {
  using rule = palimpsa::Palimpsa;
  tensors<rule> t(s, -0.05f, 3);
  std::int64_t const n = s.B * s.HV * s.V * s.K;
  auto const eta = random_array<float>(n, 1, 0, 7), evidence = random_array<float>(n, 0.5f, 1, 8);
  auto const in = t.inputs(s);
  palimpsa::step_arguments<storage_type> a;
  a.q = in.q, a.k = in.k, a.v = in.v, a.beta = in.beta, a.log_decay = in.log_decay, a.prior = in.prior;
  a.eta = {eta->data, {s.B, s.HV, s.V, s.K}}, a.evidence = {evidence->data, {s.B, s.HV, s.V, s.K}};
  a.out = {t.out.data, {s.B, 1, s.HV, s.V}};
  for (auto _ : state)
    state.SetIterationTime(milliseconds([&] {
                             for (int i = 0; i < calls; ++i) palimpsa::step<rule>(palimpsa::cuda::sequential{}, a, palimpsa::workspace{});
                           }) *
                           1e-3 / calls);
  if (!t.finite()) state.SkipWithError("outputs are not finite");
  double const moved = 4.0 * 4 * static_cast<double>(n), floor = moved / card().bytes_per_s;
  state.counters["floor_us"] = floor * 1e6;
  state.counters["floor/time"] = benchmark::Counter(floor, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["TB/s"] = benchmark::Counter(moved * 1e-12, benchmark::Counter::kIsIterationInvariantRate);
}

void report_card(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(1e-3);
  state.counters["copy_TB/s"] = card().bytes_per_s * 1e-12;
  state.counters["fma_T/s"] = card().fma_per_s * 1e-12;
  state.counters["reciprocals_T/s"] = card().reciprocals_per_s * 1e-12;
}

// Operations a state element and token. Palimpsa: η and J take a product and a fused multiply-add each, prior + J one addition, η·r one
// product, the sum one more: 7, and one reciprocal. Mamba2: 3. Gated DeltaNet: 6 (decay, prediction, correction, write, sum).
shape const model_760m{8, 4096, 16, 16, 96, 192, true}, mamba_2_7b{4, 4096, 1, 80, 128, 64, false},
    gated_delta{1, 8192, 64, 64, 128, 128, false}, mesa{1, 512, 16, 16, 128, 128, false};

template <class F>
void add(char const* name, F f) {
  benchmark::RegisterBenchmark(name, f)->UseManualTime()->Unit(benchmark::kMillisecond);
}

bool const registered = [] {
  using state = benchmark::State&;
  benchmark::RegisterBenchmark("card", report_card)->UseManualTime()->Iterations(1);
  add("step/Palimpsa/B128_H80_K128_V64", [](state s) { step(s, {128, 1, 80, 80, 128, 64, true}, 1); });
  add("step/Palimpsa/B1_H32_K128_V128/back_to_back", [](state s) { step(s, {1, 1, 32, 32, 128, 128, true}, 100); });
  add("step/Palimpsa/B1_H32_K128_V128/alone", [](state s) { step(s, {1, 1, 32, 32, 128, 128, true}, 1); });
  add("scan/Palimpsa/760M/gate_0.05", [](state s) { scan<palimpsa::Palimpsa>(s, model_760m, -0.05f, {7, 1}); });
  add("scan/Palimpsa/760M/gate_3", [](state s) { scan<palimpsa::Palimpsa>(s, model_760m, -3.0f, {7, 1}); });
  add("scan/Mamba2/2.7B", [](state s) { scan<palimpsa::Mamba2>(s, mamba_2_7b, -0.05f, {3, 0}); });
  add("scan/GatedDeltaNet/T8192_H64", [](state s) { scan<palimpsa::GatedDeltaNet>(s, gated_delta, -0.05f, {6, 0}); });
  add("scan/MesaNet/T512_H16/30_iterations", [](state s) {
    scan<palimpsa::MesaNet>(s, mesa, -0.05f, {3 + 30, 0}, palimpsa::cuda::sequential{.solve_iterations = 30});
  });
  return true;
}();

}  // namespace
