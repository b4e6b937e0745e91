// Chunks at the edge of their numbers, against a plain loop in long double: gates so slow that float would lose what they take, in
// memories of 65,536 tokens; magnitudes over the whole range; one key that carries all. Planted and caught: α rounded to float before
// its product, the decay of a chunk rounded before it meets the state, keys left unscaled, β v formed in float.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/scan_chunked.hpp"
#include "support/catch.hpp"

namespace ps = palimpsa;

namespace {

constexpr std::size_t K = 4, V = 3;
using wide = long double;

/// One head. log_decay is one a token, or one a token and key.
template <class S> struct stream {
  std::size_t tokens;
  bool per_key = false;
  S prior = S(1.5);
  std::vector<S> q, k, v, beta, log_decay, eta;  // eta: before the first token

  explicit stream(std::size_t n)
      : tokens(n), q(n * K), k(n * K), v(n * V), beta(n, S(1)), log_decay(n), eta(V * K) {}
};

/// Reads, and what their roundings may add up to: ε aside.
struct reading {
  std::vector<wide> out, size;
};

/// x with (diag(prior) + J) x = q.
std::array<wide, K> solved(std::array<wide, K * K> a, std::array<wide, K> x, wide prior) {
  for (std::size_t j = 0; j < K; ++j) a[j * K + j] += prior;
  for (std::size_t c = 0; c < K; ++c)
    for (std::size_t i = c + 1; i < K; ++i) {
      wide const f = a[i * K + c] / a[c * K + c];
      for (std::size_t j = c; j < K; ++j) a[i * K + j] -= f * a[c * K + j];
      x[i] -= f * x[c];
    }
  for (std::size_t i = K; i-- > 0;) {
    for (std::size_t j = i + 1; j < K; ++j) x[i] -= a[i * K + j] * x[j];
    x[i] /= a[i * K + i];
  }
  return x;
}

/// One token after the other, as the rule is written on paper.
template <class Rule, class S> reading plain_loop(stream<S> const& x) {
  constexpr bool delta = ps::chunked_form<Rule> == ps::chunk_form::wy;
  constexpr bool exact = std::is_same_v<typename Rule::gain_type, ps::gain::exact>;
  std::vector<wide> eta(x.eta.begin(), x.eta.end()), bound(V * K), J(V * K);
  std::array<wide, K * K> full{};
  for (std::size_t c = 0; c < V * K; ++c) bound[c] = std::fabs(eta[c]);
  reading r;
  for (std::size_t t = 0; t < x.tokens; ++t) {
    std::array<wide, K> k, q, alpha;
    wide const beta = x.beta[t];
    wide kk = 0, qq = 0;
    for (std::size_t j = 0; j < K; ++j) {
      k[j] = x.k[t * K + j], q[j] = x.q[t * K + j];
      alpha[j] = std::exp(static_cast<wide>(x.per_key ? x.log_decay[t * K + j] : x.log_decay[t]));
      kk += k[j] * k[j], qq += q[j] * q[j];
    }
    wide const gain = exact ? 1 / (1 + beta * kk) : 1;
    for (std::size_t i = 0; i < K && Rule::keeps_full; ++i)
      for (std::size_t j = 0; j < K; ++j) full[i * K + j] = alpha[0] * full[i * K + j] + beta * k[i] * k[j];
    std::array<wide, K> const y = Rule::keeps_full ? solved(full, q, x.prior) : q;
    for (std::size_t i = 0; i < V; ++i) {
      wide c = 0, norm = 0, out = 0, size = 0;
      for (std::size_t j = 0; j < K; ++j) c += alpha[j] * eta[i * K + j] * k[j], norm += eta[i * K + j] * eta[i * K + j];
      wide const u = beta * static_cast<wide>(x.v[t * V + i]), w = delta ? gain * (u - beta * c) : u;
      for (std::size_t j = 0; j < K; ++j) {
        wide &e = eta[i * K + j], &b = bound[i * K + j], &one = J[i * K + j];
        e = alpha[j] * e + w * k[j];
        one = alpha[j] * one + beta * k[j] * k[j];
        wide const R = Rule::keeps_diagonal ? x.prior + one : 1;
        out += e * y[j] / R;
        // A DeltaNet's correction shrinks errors that it finds: a row's are those of all its tokens, in length.
        if (delta) b = alpha[j] * b + std::sqrt(norm) + std::fabs(gain * u) * std::sqrt(kk);
        else b = alpha[j] * b + std::fabs(w * k[j]);
        size += delta ? b * std::sqrt(qq) : b * std::fabs(y[j]) / R;
      }
      r.out.push_back(out), r.size.push_back(size);
    }
  }
  return r;
}

template <class Rule, class S> std::vector<S> chunks(stream<S> const& x, std::int64_t chunk) {
  std::vector<S> out(x.tokens * V, std::numeric_limits<S>::quiet_NaN());
  auto const T = static_cast<std::int64_t>(x.tokens);
  std::int64_t const k = K, v = V;
  ps::scan_inputs<S> in;
  in.q = {x.q.data(), {1, T, 1, k}}, in.k = {x.k.data(), {1, T, 1, k}}, in.v = {x.v.data(), {1, T, 1, v}};
  in.beta = {x.beta.data(), {1, T, 1}};
  if constexpr (Rule::forget_type::scope == ps::gate_scope::key) in.log_decay = {x.log_decay.data(), {1, T, 1, k}};
  if constexpr (Rule::forget_type::scope == ps::gate_scope::head) in.log_decay = {x.log_decay.data(), {1, T, 1}};
  if constexpr (Rule::forget_type::scope == ps::gate_scope::constant) in.log_decay = {x.log_decay.data(), {1}};
  if constexpr (Rule::keeps_precision) in.prior = {&x.prior, {1}};
  in.initial_eta = {x.eta.data(), {1, 1, v, k}};
  ps::scan_outputs<S> to;
  to.out = {out.data(), {1, T, 1, v}};
  ps::scan<Rule>(ps::chunked{chunk, 1}, in, to, ps::allocate);
  return out;
}

/// ‖x - right‖/‖right‖ over the first n tokens.
template <class S> double error_of(std::vector<S> const& x, reading const& r, std::size_t n) {
  wide difference = 0, norm = 0;
  for (std::size_t i = 0; i < n * V; ++i) difference += (x[i] - r.out[i]) * (x[i] - r.out[i]), norm += r.out[i] * r.out[i];
  double const error = static_cast<double>(std::sqrt(difference / norm));
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

/// A memory that lasts: a state of about one, and writes so small that a DeltaNet does not overwrite it.
template <class Rule, class S> void check_slow(double bound) {
  for (double gate : {-3e-8, -1e-6, -1e-4}) {
    stream<S> x(65536);
    x.per_key = Rule::forget_type::scope == ps::gate_scope::key;
    x.log_decay.assign(x.tokens * (x.per_key ? K : 1), static_cast<S>(gate));
    std::mt19937 random(11);
    std::normal_distribution<double> normal;
    for (auto* of : {&x.q, &x.k, &x.v, &x.eta})
      for (S& one : *of) one = static_cast<S>(normal(random));
    for (S& one : x.beta) one = static_cast<S>(1e-5 * (1 + std::fabs(normal(random))));
    reading const right = plain_loop<Rule>(x);
    for (std::int64_t chunk : {16, 64, 256}) {
      std::vector<S> const out = chunks<Rule>(x, chunk);
      for (std::size_t n : {std::size_t{4096}, std::size_t{16384}, std::size_t{65536}}) {
        INFO("log_decay " << gate << ", chunk " << chunk << ", " << n << " tokens: error " << error_of(out, right, n));
        CHECK(error_of(out, right, n) <= bound);
      }
    }
  }
}

/// Keys of 1e-18 ... 1e18, β k² of 1e-12 ... 1e12, writes β v k of 1e-15 ... 1e15, queries of 1e-15 ... 1e15, prior 1.5.
stream<float> wide_stream(std::mt19937& random) {
  auto const power = [&](double most) { return std::pow(10.0, std::uniform_real_distribution<double>(-most, most)(random)); };
  auto const fits = [](double x) { return x > 1e-37 && x < 1e37; };
  stream<float> x(12);
  for (std::size_t t = 0; t < x.tokens; ++t) {
    double key, beta, value;
    do key = power(18), beta = power(12) / (key * key), value = power(15) / (beta * key);
    while (!fits(beta) || !fits(value));
    double const query = power(15);
    std::normal_distribution<double> normal;
    for (std::size_t j = 0; j < K; ++j) {
      x.k[t * K + j] = static_cast<float>(key * normal(random) / 2);
      x.q[t * K + j] = static_cast<float>(query * normal(random) / 2);
    }
    for (std::size_t i = 0; i < V; ++i) x.v[t * V + i] = static_cast<float>(value * normal(random) / 2);
    x.beta[t] = static_cast<float>(beta);
    x.log_decay[t] = static_cast<float>(-std::fabs(normal(random)) * (t % 5 == 3 ? 30 : 0.3));
  }
  return x;
}

template <class Rule> void check_ranges() {
  std::mt19937 random(23);
  for (int draw = 0; draw < 200; ++draw) {
    stream<float> const x = wide_stream(random);
    reading const right = plain_loop<Rule>(x);
    for (std::int64_t chunk : {1, 5, 12}) {
      std::vector<float> const out = chunks<Rule>(x, chunk);
      for (std::size_t i = 0; i < out.size(); ++i) {
        double const error = static_cast<double>(std::fabs(static_cast<wide>(out[i]) - right.out[i]));
        double const rounding = static_cast<double>(right.size[i]) * static_cast<double>(std::numeric_limits<float>::epsilon());
        INFO("draw " << draw << ", chunk " << chunk << ", token " << i / V << ": " << out[i] << ", right " << right.out[i]);
        CHECK(error <= 16 * rounding + static_cast<double>(std::numeric_limits<float>::min()));  // what is less is zero
      }
    }
  }
}

/// One key of length k along one axis, nothing written: the read of what is kept.
template <class Rule> void check_one_key(bool relative) {
  for (double k = 1e-3; k < 2e6; k *= 10) {
    stream<float> x(1);
    x.k[1] = static_cast<float>(k), x.q[1] = 1, x.prior = 1;
    std::fill(x.eta.begin(), x.eta.end(), 0.7F);
    reading const right = plain_loop<Rule>(x);
    std::vector<float> const out = chunks<Rule>(x, 16);
    double const share = relative ? static_cast<double>(right.out[0]) / 0.7 : 1;
    INFO("k " << k << ": " << out[0] << ", right " << right.out[0]);
    CHECK(std::fabs(static_cast<double>(out[0] - right.out[0])) <= 4 * std::numeric_limits<float>::epsilon() * share);
  }
}

}  // namespace

TEST_CASE("Slow gates keep their digits in chunks, in float") {
  check_slow<ps::Mamba2, float>(1e-5);
  check_slow<ps::RetNet, float>(1e-5);
  check_slow<ps::with_forget<ps::Mamba2, ps::forget::per_key>, float>(1e-5);
  check_slow<ps::GatedDeltaNet, float>(1e-5);
  check_slow<ps::ImplicitGatedDeltaNet, float>(1e-5);
  check_slow<ps::with_forget<ps::GatedDeltaNet, ps::forget::per_key>, float>(1e-5);
  check_slow<ps::Palimpsa, float>(1e-5);
  check_slow<ps::MesaNet, float>(1e-5);
}
TEST_CASE("Slow gates keep their digits in chunks, in double") {
  check_slow<ps::Mamba2, double>(1e-12);
  check_slow<ps::GatedDeltaNet, double>(1e-12);
}

TEST_CASE("Chunks of every magnitude") {
  check_ranges<ps::Mamba2>();
  check_ranges<ps::ImplicitGatedDeltaNet>();
}

TEST_CASE("What is formed on the way leaves the range, the read does not") {
  struct token {
    float k, beta, v, q;
  };
  // k² and k·q; β v below the range; β v above it.
  for (token one : {token{1e20F, 1e-20F, 1, 1e20F}, token{1e20F, 1e-30F, 1e-12F, 1e20F}, token{1e-20F, 1e20F, 1e20F, 1e-10F}}) {
    auto const read = [&](auto rule) {
      stream<float> x(1);
      x.k[0] = one.k, x.q[0] = one.q, x.beta[0] = one.beta, x.v[0] = one.v, x.prior = 1;
      return static_cast<wide>(chunks<decltype(rule)>(x, 16)[0]) / plain_loop<decltype(rule)>(x).out[0];
    };
    CAPTURE(one.k, one.beta, one.v, one.q);
    CHECK(std::fabs(read(ps::Mamba2{}) - 1) <= 4 * std::numeric_limits<float>::epsilon());
    CHECK(std::fabs(read(ps::ImplicitGatedDeltaNet{}) - 1) <= 4 * std::numeric_limits<float>::epsilon());
    CHECK(std::fabs(read(ps::MesaNet{}) - 1) <= 4 * std::numeric_limits<float>::epsilon());
  }
}

// docs/numerics.md, "Gates of a chunk", says why the two differ.
TEST_CASE("One key that carries all: a full memory keeps its share, a DeltaNet in chunks all but a few roundings of the state") {
  check_one_key<ps::MesaNet>(true);
  check_one_key<ps::ImplicitGatedDeltaNet>(false);
}
