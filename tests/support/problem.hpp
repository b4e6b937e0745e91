#pragma once
// Random problems: every size, optional tensor and kind of gate of the contract, as dense row-major doubles. The seed
// of a problem is printed with every failure (`INFO(p)`); PALIMPSA_TEST_SEED=<n> moves every problem of a run.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

namespace palimpsa_test {

/// The write of a rule, as the table of rules names it.
enum class kind { mamba2, longhorn, delta, implicit_delta, palimpsa, diagonal_kalman, mesa_net };
inline constexpr kind every_kind[] = {kind::mamba2,   kind::longhorn,        kind::delta,   kind::implicit_delta,
                                      kind::palimpsa, kind::diagonal_kalman, kind::mesa_net};

/// How many gates a token has.
enum class gates { none, constant, head, key };

/// A rule by name: what the oracle and the dispatch of tests/support/rules.hpp understand.
struct rule_name {
  kind write = kind::palimpsa;
  gates forget = gates::head;
  bool preweighted = false;

  bool keeps_diagonal() const { return write == kind::palimpsa || write == kind::diagonal_kalman; }
  bool keeps_full() const { return write == kind::mesa_net; }
  bool keeps_precision() const { return keeps_diagonal() || keeps_full(); }
};

inline std::ostream& operator<<(std::ostream& out, rule_name const& r) {
  char const* const writes[] = {"Mamba2",   "Longhorn",       "DeltaNet", "implicit DeltaNet",
                                "Palimpsa", "DiagonalKalman", "MesaNet"};
  char const* const forgets[] = {"no gate", "constant gate", "gate per head", "gate per key"};
  return out << writes[static_cast<int>(r.write)] << ", " << forgets[static_cast<int>(r.forget)]
             << (r.preweighted ? ", preweighted" : "");
}

enum class beta_shape { absent, head, channel };

/// What to draw.
struct recipe {
  std::int64_t B = 2, T = 19, HK = 2, HV = 4, K = 9, V = 7;
  std::vector<std::int64_t> lengths = {};  ///< packed sequences: their sum is T, B is 1
  beta_shape beta = beta_shape::channel;   ///< per head for MesaNet unless absent
  bool gated = true;                       ///< false: log_decay is absent though the rule has a gate
  bool initial_state = true;
  bool prior_per_key = false;  ///< MesaNet
  bool one_hot_keys = false;
  bool repeated_keys = false;  ///< a third of the tokens brings the key before it again
  double key_size = 1;
  double prior_size = 1;
  double scale = 0.7;
  std::vector<double> log_decays = {
      0, -0.05, -0.05, -1, -3, -20, -1000, -std::numeric_limits<double>::infinity()};  ///< drawn from, evenly
};

using numbers = std::vector<double>;

/// A call's inputs, dense and row-major; an empty tensor is absent.
struct problem {
  rule_name rule;
  recipe sizes;
  std::uint64_t seed = 0;
  std::vector<std::int64_t> cu_seqlens;  ///< empty = not packed
  numbers q, k, v, beta, log_decay, prior, initial_eta, initial_evidence;

  std::int64_t sequences() const {
    return cu_seqlens.empty() ? sizes.B : static_cast<std::int64_t>(cu_seqlens.size()) - 1;
  }
  /// Rows of a head's evidence: V, or K where the whole matrix is kept.
  std::int64_t evidence_rows() const { return rule.keeps_full() ? sizes.K : sizes.V; }
  std::int64_t longest() const {
    std::int64_t n = cu_seqlens.empty() ? sizes.T : 0;
    for (std::size_t i = 1; i < cu_seqlens.size(); ++i) n = (std::max)(n, cu_seqlens[i] - cu_seqlens[i - 1]);
    return n;
  }
};

inline std::ostream& operator<<(std::ostream& out, problem const& p) {
  recipe const& s = p.sizes;
  out << p.rule << ": B " << s.B << " T " << s.T << " HK " << s.HK << " HV " << s.HV << " K " << s.K << " V " << s.V
      << ", " << p.sequences() << " sequences, seed " << p.seed;
  return out;
}

/// The seed of the n-th problem of a test.
inline std::uint64_t seed_of(std::uint64_t n) {
  char const* const base = std::getenv("PALIMPSA_TEST_SEED");
  return n + 1000003 * (base == nullptr ? 0 : std::strtoull(base, nullptr, 10));
}

/// Numbers of one problem.
class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}
  double normal() { return normal_(engine_); }
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  template <class C> auto pick(C const& choices) {
    return choices[static_cast<std::size_t>(integer(0, static_cast<std::int64_t>(std::size(choices)) - 1))];
  }
  numbers normals(std::int64_t n) {
    numbers x(static_cast<std::size_t>(n));
    for (double& y : x) y = normal();
    return x;
  }
  numbers uniforms(std::int64_t n, double low, double high) {
    numbers x(static_cast<std::size_t>(n));
    for (double& y : x) y = uniform(low, high);
    return x;
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
};

/// Sizes at random: around the widths of packs (1 to 16 rows) and of tiles (32 tokens), K ≠ V, HV/HK of 1 to 4.
inline recipe any_sizes(std::uint64_t n) {
  dice d(seed_of(n));
  recipe r;
  r.B = d.integer(1, 3), r.T = d.integer(1, 70);
  r.HK = d.integer(1, 2), r.HV = r.HK * d.integer(1, 4 / r.HK);
  r.K = d.integer(1, 34), r.V = d.integer(1, 34);
  r.beta = d.pick(std::vector<beta_shape>{beta_shape::head, beta_shape::channel, beta_shape::channel});
  r.prior_per_key = d.integer(0, 1) == 1;
  r.repeated_keys = d.integer(0, 1) == 1;
  r.scale = d.uniform(0.1, 2);
  return r;
}

namespace detail {

/// Keys of length about key_size: the explicit delta rule diverges for β kᵀk > 2, whoever calculates it.
inline numbers draw_keys(dice& d, recipe const& s) {
  numbers k(static_cast<std::size_t>(s.B * s.T * s.HK * s.K));
  for (std::int64_t row = 0; row < s.B * s.T * s.HK; ++row) {
    double* const key = k.data() + row * s.K;
    if (s.repeated_keys && row >= s.HK && d.integer(0, 2) == 0) {
      for (std::int64_t j = 0; j < s.K; ++j) key[j] = key[j - s.HK * s.K];
    } else if (s.one_hot_keys) {
      key[d.integer(0, s.K - 1)] = s.key_size * d.uniform(0.5, 1.1);
    } else {
      for (std::int64_t j = 0; j < s.K; ++j) key[j] = s.key_size * d.normal() / std::sqrt(static_cast<double>(s.K));
    }
  }
  return k;
}

/// J of N·HV heads: squares on a diagonal memory, A Aᵀ/K on a full one.
inline numbers draw_evidence(dice& d, rule_name rule, recipe const& s, std::int64_t heads) {
  double const unit = s.key_size * s.key_size;
  if (!rule.keeps_full()) return d.uniforms(heads * s.V * s.K, 0, 2 * unit);
  numbers J(static_cast<std::size_t>(heads * s.K * s.K));
  for (std::int64_t h = 0; h < heads; ++h) {
    numbers const a = d.normals(s.K * s.K);
    for (std::int64_t i = 0; i < s.K; ++i)
      for (std::int64_t j = 0; j < s.K; ++j)
        for (std::int64_t l = 0; l < s.K; ++l)
          J[static_cast<std::size_t>((h * s.K + i) * s.K + j)] += unit * a[static_cast<std::size_t>(i * s.K + l)] *
                                                                  a[static_cast<std::size_t>(j * s.K + l)] /
                                                                  static_cast<double>(s.K);
  }
  return J;
}

}  // namespace detail

/// Draws a problem.
inline problem draw(rule_name rule, recipe s, std::uint64_t n) {
  problem p;
  p.rule = rule;
  p.seed = seed_of(n);
  dice d(p.seed);
  if (!s.lengths.empty()) {
    s.B = 1;
    p.cu_seqlens.push_back(0);
    for (std::int64_t length : s.lengths) p.cu_seqlens.push_back(p.cu_seqlens.back() + length);
    s.T = p.cu_seqlens.back();
  }
  if (rule.keeps_full() && s.beta == beta_shape::channel) s.beta = beta_shape::head;
  p.sizes = s;
  p.q = d.normals(s.B * s.T * s.HK * s.K);
  p.k = detail::draw_keys(d, s);
  p.v = d.normals(s.B * s.T * s.HV * s.V);
  if (s.beta != beta_shape::absent)
    p.beta = d.uniforms(s.B * s.T * s.HV * (s.beta == beta_shape::channel ? s.V : 1), 0, 1);
  if (rule.forget == gates::constant) p.log_decay = d.uniforms(s.HV, -2, 0);
  if (s.gated && (rule.forget == gates::head || rule.forget == gates::key)) {
    p.log_decay.resize(static_cast<std::size_t>(s.B * s.T * s.HV * (rule.forget == gates::key ? s.K : 1)));
    for (double& g : p.log_decay) g = d.pick(s.log_decays);
  }
  if (rule.keeps_precision()) p.prior = d.uniforms(s.HV * (s.prior_per_key && rule.keeps_full() ? s.K : 1), 0.3, 2);
  for (double& x : p.prior) x *= s.prior_size;
  if (s.initial_state) {
    std::int64_t const heads = p.sequences() * s.HV;
    p.initial_eta = d.normals(heads * s.V * s.K);
    bool const sums =
        rule.keeps_precision() || rule.write == kind::mamba2;  // η is a sum of u kᵀ, or of the size of v/k
    for (double& x : p.initial_eta) x *= sums ? s.key_size : 1 / s.key_size;
    if (rule.keeps_precision()) p.initial_evidence = detail::draw_evidence(d, rule, s, heads);
  }
  return p;
}

}  // namespace palimpsa_test
