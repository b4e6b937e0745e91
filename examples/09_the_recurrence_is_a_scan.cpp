// Lesson: a recurrence whose transition is diagonal is a scan.
//
// One token maps a cell of the state to a x + b. Two such maps, one after the other, are a map of the same kind,
//
//     (a, b) then (a', b')  =  (a' a,  a' b + b'),
//
// and composing is associative: any grouping of tokens gives the same state. That is why time can be cut into chunks and run in
// parallel, on a GPU by any library that has a scan. Here Thrust's inclusive_scan (the standard library's where Thrust is not
// installed) computes what the library's recurrence computes:
//
//     Mamba2      η: a = α,                b = βv k_j
//     Palimpsa    η: a = α,                b = βv k_j       J: a = α,  b = β k_j²       read  Σ_j η_j q_j / (prior + J_j)
//     Longhorn    η: a = α(1 - g k_j²),    b = g v k_j      g = β/(1 + β kᵀk)

#if __has_include(<thrust/scan.h>)
#include <thrust/execution_policy.h>
#include <thrust/scan.h>
#endif

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <random>
#include <vector>

#include "palimpsa/palimpsa.hpp"
#include "support/table.hpp"

using example::text;

namespace {

constexpr int T = 512, K = 8;

struct affine {
  double a, b;
};

std::vector<affine> scanned(std::vector<affine> maps) {
  auto const then = [](affine f, affine g) { return affine{g.a * f.a, g.a * f.b + g.b}; };
#if __has_include(<thrust/scan.h>)
  thrust::inclusive_scan(thrust::host, maps.begin(), maps.end(), maps.begin(), then);
#else
  std::inclusive_scan(maps.begin(), maps.end(), maps.begin(), then);
#endif
  return maps;
}

/// One row of one head, T tokens.
struct tokens {
  std::vector<double> q, k, v, beta, log_decay;
};

/// The library's reads, token by token.
template <class Rule>
std::vector<double> recurrence(tokens const& x, double const* prior) {
  std::vector<double> out(T);
  palimpsa::scan_inputs<double> in;
  in.q = {x.q.data(), {1, T, 1, K}}, in.k = {x.k.data(), {1, T, 1, K}}, in.v = {x.v.data(), {1, T, 1, 1}};
  in.beta = {x.beta.data(), {1, T, 1}}, in.log_decay = {x.log_decay.data(), {1, T, 1}};
  if (prior != nullptr) in.prior = {prior, {1}};
  palimpsa::scan_outputs<double> to;
  to.out = {out.data(), {1, T, 1, 1}};
  palimpsa::scan<Rule>(palimpsa::sequential{}, in, to, palimpsa::allocate);
  return out;
}

/// The same reads from scans over the cells; map(t, j) is token t's for cell j, precision(t, j) divides the state.
template <class Map, class Precision>
std::vector<double> by_scan(tokens const& x, Map map, Precision precision) {
  std::vector<double> out(T);
  for (int j = 0; j < K; ++j) {
    std::vector<affine> eta(T), J(T);
    for (std::size_t t = 0; t < T; ++t) eta[t] = map(t, j), J[t] = precision(t, j);
    eta = scanned(eta), J = scanned(J);
    for (std::size_t t = 0; t < T; ++t) out[t] += eta[t].b / J[t].b * x.q[t * K + static_cast<std::size_t>(j)];
  }
  return out;
}

double distance(std::vector<double> const& x, std::vector<double> const& y) {
  double gap = 0, size = 0;
  for (std::size_t t = 0; t < T; ++t) gap += (x[t] - y[t]) * (x[t] - y[t]), size += y[t] * y[t];
  return std::sqrt(gap / size);
}

}  // namespace

int main() {
  std::mt19937 engine(7);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  tokens x{std::vector<double>(T * K), std::vector<double>(T * K), std::vector<double>(T), std::vector<double>(T), std::vector<double>(T)};
  for (double& y : x.q) y = normal(engine);
  for (double& y : x.k) y = normal(engine) / std::sqrt(K);
  for (std::size_t t = 0; t < T; ++t) x.v[t] = normal(engine), x.beta[t] = uniform(engine), x.log_decay[t] = -4 * uniform(engine);
  double const prior = 0.5;

  auto const alpha = [&](std::size_t t) { return std::exp(x.log_decay[t]); };
  auto const key = [&](std::size_t t, int j) { return x.k[t * K + static_cast<std::size_t>(j)]; };
  auto const one = [](std::size_t, int) { return affine{0, 1}; };
  auto const added = [&](std::size_t t, int j) { return affine{alpha(t), x.beta[t] * x.v[t] * key(t, j)}; };
  // prior + J is affine too: α (prior + J) + (1 - α) prior + βk². The first token starts from prior.
  auto const importance = [&](std::size_t t, int j) {
    double const rest = (1 - alpha(t)) * prior + x.beta[t] * key(t, j) * key(t, j);
    return affine{alpha(t), t == 0 ? alpha(t) * prior + rest : rest};
  };
  auto const corrected = [&](std::size_t t, int j) {
    double kk = 0;
    for (int l = 0; l < K; ++l) kk += key(t, l) * key(t, l);
    double const g = x.beta[t] / (1 + x.beta[t] * kk);
    return affine{alpha(t) * (1 - g * key(t, j) * key(t, j)), g * x.v[t] * key(t, j)};
  };

  double const gaps[] = {distance(by_scan(x, added, one), recurrence<palimpsa::Mamba2>(x, nullptr)),
                         distance(by_scan(x, added, importance), recurrence<palimpsa::Palimpsa>(x, &prior)),
                         distance(by_scan(x, corrected, one), recurrence<palimpsa::Longhorn>(x, nullptr))};
  char const* const names[] = {"Mamba2", "Palimpsa", "Longhorn"};
  example::table table({"rule", "scan against recurrence"});
  for (int i = 0; i < 3; ++i) table.add({names[i], text(gaps[i], "%.1e")});
  table.print();
  example::claims claims;
  claims.that(*std::max_element(gaps, gaps + 3) < 1e-12, "512 tokens of three rules are three scans");
  return claims.exit_code();
}
