#pragma once
// Right values, in double, one token after another, from the published form of each rule. Shares nothing with the
// library.
//
//   Mamba2            S ← α S + u kᵀ                                               o = S q
//   Longhorn          S ← (1 - ε β k²) ⊙ α S + ε u kᵀ,   ε = 1/(1 + β kᵀk)        o = S q
//   DeltaNet          S ← α S (1 - ε β k kᵀ) + ε u kᵀ,   ε = 1, or 1/(1 + β kᵀk)  o = S q
//   Palimpsa          R = α I + (1 - α) I_prior,  m = α (I/R) ⊙ μ,  I ← R + β k²,  μ ← (R ⊙ m + u kᵀ) / I      o = μ q
//   DiagonalKalman    R, m and I as there,  P = 1/R,  μ ← m + P k (u - β m·k) / (1 + β kᵀP k)                   o = μ q
//   MesaNet           S ← α S + u kᵀ,  J ← α J + β k kᵀ                            o = S (J + Λ_prior)⁻¹ q

#include <cmath>
#include <cstdint>
#include <utility>

#include "support/problem.hpp"

namespace palimpsa_test {

/// What a call must write, dense and row-major; out_variance and final_evidence are empty for rules that keep no
/// precision.
struct right_values {
  numbers out, out_variance, final_eta, final_evidence;
  double condition = 1;  ///< the worst ∞-norm condition of a system that was solved (MesaNet)
  double read_size = 0;  ///< Σ (Σ_j |μ_j q_j|)² over all reads, scaled as `out`: see cancellation()
};

/// ‖Σ_j |μ_j q_j|‖₂ / ‖Σ_j μ_j q_j‖₂ over all reads: how much of their terms' size the sums lose.
inline double cancellation(right_values const& r) {
  double norm = 0;
  for (double x : r.out) norm += x * x;
  return norm > 0 && std::isfinite(norm) ? std::sqrt(r.read_size / norm) : 1;
}

namespace detail {

/// A dense n×m matrix somewhere in an array of doubles.
template <class T> struct matrix {
  T* data;
  std::int64_t columns;
  T& operator()(std::int64_t i, std::int64_t j) const { return data[i * columns + j]; }
};

inline double largest_row_sum(matrix<double const> a) {
  double most = 0;
  for (std::int64_t i = 0; i < a.columns; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < a.columns; ++j) sum += std::fabs(a(i, j));
    most = sum > most ? sum : most;
  }
  return most;
}

/// a⁻¹ by Gauss-Jordan elimination with pivoting.
inline numbers inverse(numbers values, std::int64_t n) {
  numbers inverted(values.size());
  matrix<double> const a{values.data(), n}, b{inverted.data(), n};
  for (std::int64_t i = 0; i < n; ++i) b(i, i) = 1;
  for (std::int64_t c = 0; c < n; ++c) {
    std::int64_t p = c;
    for (std::int64_t i = c + 1; i < n; ++i)
      if (std::fabs(a(i, c)) > std::fabs(a(p, c))) p = i;
    for (std::int64_t j = 0; j < n; ++j) std::swap(a(c, j), a(p, j)), std::swap(b(c, j), b(p, j));
    double const pivot = a(c, c);
    for (std::int64_t j = 0; j < n; ++j) a(c, j) /= pivot, b(c, j) /= pivot;
    for (std::int64_t i = 0; i < n; ++i) {
      double const f = a(i, c);
      if (i == c || f == 0) continue;
      for (std::int64_t j = 0; j < n; ++j) a(i, j) -= f * a(c, j), b(i, j) -= f * b(c, j);
    }
  }
  return inverted;
}

/// One head of one sequence: S [V,K] (μ where a diagonal is kept), J [V,K] or [K,K], prior [K].
struct oracle_head {
  rule_name rule;
  std::int64_t K, V;
  matrix<double> S, J;
  numbers prior;

  double importance(std::int64_t i, std::int64_t j) const {
    return prior[static_cast<std::size_t>(j)] + (rule.keeps_diagonal() ? J(i, j) : i == j ? J(i, j) : 0);
  }

  /// One cell after the token: mean m and precision R after forgetting, k·m, and the exact gain of the row.
  double written(double m, double R, double k, double km, double gain, double beta, double u) const {
    switch (rule.write) {
      case kind::mamba2:
      case kind::mesa_net:
        return m + u * k;
      case kind::longhorn:
        return (1 - gain * beta * k * k) * m + gain * u * k;
      case kind::delta:
        return m - beta * km * k + u * k;
      case kind::implicit_delta:
        return m - gain * beta * km * k + gain * u * k;
      case kind::palimpsa:
        return (R * m + u * k) / (R + beta * k * k);
      case kind::diagonal_kalman:
        return m + k / R * gain * (u - beta * km);
    }
    return 0;
  }

  /// Row i forgets and writes.
  void write(std::int64_t i, double const* k, numbers const& alpha, double beta, double u) const {
    numbers R(alpha.size(), 1), m(alpha.size());
    double kPk = 0, km = 0;
    for (std::int64_t j = 0; j < K; ++j) {
      auto const l = static_cast<std::size_t>(j);
      if (rule.keeps_diagonal()) R[l] = prior[l] + alpha[l] * J(i, j);
      m[l] = alpha[l] * S(i, j) * (rule.keeps_diagonal() ? importance(i, j) / R[l] : 1);
      kPk += k[j] * k[j] / R[l];
      km += k[j] * m[l];
    }
    for (std::int64_t j = 0; j < K; ++j) {
      auto const l = static_cast<std::size_t>(j);
      S(i, j) = written(m[l], R[l], k[j], km, 1 / (1 + beta * kPk), beta, u);
      if (rule.keeps_diagonal()) J(i, j) = alpha[l] * J(i, j) + beta * k[j] * k[j];
    }
  }

  /// The matrix all rows share forgets and writes; x = Λ⁻¹ q.
  numbers solve(double const* k, double const* q, double alpha, double beta, double& condition) const {
    numbers lambda(static_cast<std::size_t>(K * K)), x(static_cast<std::size_t>(K));
    for (std::int64_t i = 0; i < K; ++i)
      for (std::int64_t j = 0; j < K; ++j) {
        J(i, j) = alpha * J(i, j) + beta * k[i] * k[j];
        lambda[static_cast<std::size_t>(i * K + j)] = i == j ? importance(i, i) : J(i, j);
      }
    numbers const inverted = inverse(lambda, K);
    condition = (std::max)(condition, largest_row_sum({lambda.data(), K}) * largest_row_sum({inverted.data(), K}));
    for (std::int64_t i = 0; i < K; ++i)
      for (std::int64_t j = 0; j < K; ++j)
        x[static_cast<std::size_t>(i)] += inverted[static_cast<std::size_t>(i * K + j)] * q[j];
    return x;
  }

  /// μ from η, or η from μ.
  void divide_by_importance() const {
    for (std::int64_t i = 0; rule.keeps_diagonal() && i < V; ++i)
      for (std::int64_t j = 0; j < K; ++j) S(i, j) /= importance(i, j);
  }
  void multiply_by_importance() const {
    for (std::int64_t i = 0; rule.keeps_diagonal() && i < V; ++i)
      for (std::int64_t j = 0; j < K; ++j) S(i, j) *= importance(i, j);
  }
};

/// Element i of a tensor, or what stands for an absent one.
inline double given(numbers const& tensor, std::int64_t i, double otherwise) {
  return tensor.empty() ? otherwise : tensor[static_cast<std::size_t>(i)];
}

/// Tokens [first, last) of a head; tokens of all batch rows are numbered through.
inline void run(problem const& p, oracle_head const& head, std::int64_t h, std::int64_t first, std::int64_t last,
                right_values& r) {
  recipe const& s = p.sizes;
  numbers alpha(static_cast<std::size_t>(s.K));
  for (std::int64_t t = first; t < last; ++t) {
    std::int64_t const at = t * s.HV + h, key = (t * s.HK + h / (s.HV / s.HK)) * s.K;
    double const *const k = p.k.data() + key, *const q = p.q.data() + key;
    for (std::int64_t j = 0; j < s.K; ++j) {
      std::int64_t const gate = p.rule.forget == gates::constant ? h : p.rule.forget == gates::key ? at * s.K + j : at;
      alpha[static_cast<std::size_t>(j)] = std::exp(given(p.log_decay, gate, 0));
    }
    numbers const x =
        p.rule.keeps_full() ? head.solve(k, q, alpha[0], given(p.beta, at, 1), r.condition) : numbers(q, q + s.K);
    for (std::int64_t i = 0; i < s.V; ++i) {
      double const beta = given(p.beta, s.beta == beta_shape::channel ? at * s.V + i : at, 1);
      double const v = p.v[static_cast<std::size_t>(at * s.V + i)];
      head.write(i, k, alpha, beta, p.rule.preweighted ? v : beta * v);
      double mean = 0, variance = 0, size = 0;
      for (std::int64_t j = 0; j < s.K; ++j) {
        mean += head.S(i, j) * x[static_cast<std::size_t>(j)];
        size += std::fabs(head.S(i, j) * x[static_cast<std::size_t>(j)]);
        if (p.rule.keeps_full()) variance += q[j] * x[static_cast<std::size_t>(j)];
        if (p.rule.keeps_diagonal()) variance += q[j] * q[j] / head.importance(i, j);
      }
      r.out[static_cast<std::size_t>(at * s.V + i)] = s.scale * mean;
      r.read_size += s.scale * size * (s.scale * size);
      if (p.rule.keeps_precision())
        r.out_variance[static_cast<std::size_t>(at * s.V + i)] = s.scale * s.scale * variance;
    }
  }
}

}  // namespace detail

/// Runs a problem.
inline right_values oracle(problem const& p) {
  recipe const& s = p.sizes;
  std::int64_t const heads = p.sequences() * s.HV, rows = p.rule.keeps_precision() ? p.evidence_rows() : 0;
  auto const state = [heads](numbers const& initial, std::int64_t size) {
    return initial.empty() ? numbers(static_cast<std::size_t>(heads * size)) : initial;
  };
  right_values r;
  r.out.resize(p.v.size());
  r.out_variance.resize(p.rule.keeps_precision() ? p.v.size() : 0);
  r.final_eta = state(p.initial_eta, s.V * s.K);
  r.final_evidence = state(p.initial_evidence, rows * s.K);
  for (std::int64_t head = 0; head < heads; ++head) {
    std::int64_t const n = head / s.HV, h = head % s.HV;
    detail::oracle_head one{p.rule,
                            s.K,
                            s.V,
                            {r.final_eta.data() + head * s.V * s.K, s.K},
                            {r.final_evidence.data() + head * rows * s.K, s.K},
                            {}};
    for (std::int64_t j = 0; j < s.K; ++j)
      one.prior.push_back(detail::given(p.prior, p.prior.size() > static_cast<std::size_t>(s.HV) ? h * s.K + j : h, 1));
    bool const packed = !p.cu_seqlens.empty();
    one.divide_by_importance();
    detail::run(p, one, h, packed ? p.cu_seqlens[static_cast<std::size_t>(n)] : n * s.T,
                packed ? p.cu_seqlens[static_cast<std::size_t>(n) + 1] : (n + 1) * s.T, r);
    one.multiply_by_importance();
  }
  return r;
}

}  // namespace palimpsa_test
