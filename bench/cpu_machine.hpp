#pragma once
/// @file
/// What this machine can do in one thread: fused multiply-adds, divisions, Eigen's matrix product. A time means little
/// beside another machine's; beside these it is a share of what is possible. All by thread CPU time, which does not
/// count what others use.

#include <benchmark/benchmark.h>
#include <time.h>

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "palimpsa/pack.hpp"

namespace bench {

/// Floats of one vector register.
inline constexpr int width = static_cast<int>(palimpsa::vector_bytes / sizeof(float));
/// One vector register of floats.
using vector = float __attribute__((vector_size(palimpsa::vector_bytes)));
/// The same at any address of an array of floats.
using loose_vector = float __attribute__((vector_size(palimpsa::vector_bytes), aligned(4), may_alias));

/// CPU seconds of this thread.
inline double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The fewest CPU seconds of `runs` calls of f: the one that others disturbed least.
template <class F> double fewest_seconds(int runs, F f) {
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < runs; ++run) {
    double const start = cpu_seconds();
    f();
    least = (std::min)(least, cpu_seconds() - start);
  }
  return least;
}

/// f(0), f(1), ... f(N - 1) with constant arguments: arrays indexed by them live in registers.
template <int N, class F> inline void unroll(F f) {
  [&]<int... I>(std::integer_sequence<int, I...>) { (f(std::integral_constant<int, I>{}), ...); }
  (std::make_integer_sequence<int, N>{});
}

/// Applies f(x) to 16 registers again and again: enough independent chains to hide the latency of any one operation.
/// @return  lanes through f a second
template <class F> double lane_rate(long rounds, F f) {
  constexpr int chains = 16;
  double const seconds = fewest_seconds(5, [&] {
    vector x[chains];
    for (int i = 0; i < chains; ++i) x[i] = vector{} + (1.0F + 0.01F * static_cast<float>(i));
    for (long round = 0; round < rounds; ++round) unroll<chains>([&](auto i) { x[i] = f(x[i]); });
    for (int i = 0; i < chains; ++i) benchmark::DoNotOptimize(x[i]);
  });
  return static_cast<double>(rounds) * chains * width / seconds;
}

/// Fused multiply-adds a second: x ← 0.75 x + 0.25.
inline double fma_rate() {
  vector factor = vector{} + 0.75F, term = vector{} + 0.25F;
  benchmark::DoNotOptimize(factor);
  benchmark::DoNotOptimize(term);
  return lane_rate(50'000, [=](vector x) { return x * factor + term; });
}

/// Correctly rounded divisions a second: x ← 3/x.
inline double division_rate() {
  vector numerator = vector{} + 3.0F;
  benchmark::DoNotOptimize(numerator);
  return lane_rate(10'000, [=](vector x) { return numerator / x; });
}

/// Multiply-adds a second of Eigen's C += A·B for row-major 64 × 64 floats, the block in which the chunked scan
/// multiplies.
inline double eigen_rate() {
  constexpr int n = 64, products = 100;
  using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  matrix const a = matrix::Random(n, n), b = matrix::Random(n, n);
  matrix c = matrix::Random(n, n);
  double const seconds = fewest_seconds(5, [&] {
    for (int i = 0; i < products; ++i) c.noalias() += a * b;
    benchmark::DoNotOptimize(c.data());
    benchmark::ClobberMemory();
  });
  return static_cast<double>(products) * n * n * n / seconds;
}

}  // namespace bench
