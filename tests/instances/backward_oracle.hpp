#pragma once
// Right gradients without a backward pass: the published form of each rule, one token after another, on dual numbers
// x + x' ε, ε² = 0, in long double. One run gives the derivative of the loss by one input, to rounding, with no step to choose.
// Shares nothing with the library.
//
//   Mamba2, MesaNet   S ← α S + u kᵀ                                      o = S q, S (J + Λ_prior)⁻¹ q with J ← α J + β k kᵀ
//   Longhorn          m = α S,  S ← m + s k (u - β k ⊙ m)                 s = 1/(1 + β kᵀk)
//   DeltaNets         m = α S,  S ← m + s k (u - β k·m)                   s = 1, or 1/(1 + β kᵀk)
//   Palimpsa          S ← α S + u kᵀ,  J ← α J + β k²                     o = Σ S q/(prior + J),  w = Σ q²/(prior + J)
//   DiagonalKalman    R = prior + α J,  m = α S/R,  μ = m + (k/R)(u - β k·m)/(1 + β Σ k²/R),  J as above,  S = μ (prior + J)

#include <cmath>
#include <cstdint>
#include <vector>

#include "support/problem.hpp"

namespace palimpsa_test {

/// Cotangents of a scan's outputs, dense and row-major; an empty one is absent.
struct cotangent_values {
  numbers out, out_variance, final_eta, final_evidence;
};

/// Gradients of a scan's inputs, shaped as the problem's tensors; initial states in full.
struct gradient_values {
  numbers q, k, v, beta, log_decay, prior, initial_eta, initial_evidence;
};

/// A number and its derivative.
struct dual {
  long double x = 0, d = 0;
  dual() = default;
  dual(long double value, long double slope = 0) : x(value), d(slope) {}
  friend dual operator+(dual a, dual b) { return {a.x + b.x, a.d + b.d}; }
  friend dual operator-(dual a, dual b) { return {a.x - b.x, a.d - b.d}; }
  friend dual operator*(dual a, dual b) { return {a.x * b.x, a.d * b.x + a.x * b.d}; }
  friend dual operator/(dual a, dual b) { return {a.x / b.x, (a.d - a.x / b.x * b.d) / b.x}; }
  friend dual exp(dual a) { return {std::exp(a.x), std::exp(a.x) * a.d}; }
};

/// The inputs of a loss, as dual numbers.
struct dual_inputs {
  using tensor = std::vector<dual>;
  tensor q, k, v, beta, log_decay, prior, initial_eta, initial_evidence;
};

namespace detail {

/// Solves a x = b by elimination; a is symmetric and positive, so that no pivots are needed.
inline std::vector<dual> solved(std::vector<std::vector<dual>> a, std::vector<dual> b) {
  std::size_t const n = b.size();
  for (std::size_t c = 0; c < n; ++c)
    for (std::size_t i = c + 1; i < n; ++i) {
      dual const f = a[i][c] / a[c][c];
      for (std::size_t j = c; j < n; ++j) a[i][j] = a[i][j] - f * a[c][j];
      b[i] = b[i] - f * b[c];
    }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) b[i] = b[i] - a[i][j] * b[j];
    b[i] = b[i] / a[i][i];
  }
  return b;
}

/// Number i, or what stands for an absent tensor.
inline dual at(std::vector<dual> const& tensor, std::int64_t i, long double otherwise) {
  return tensor.empty() ? dual(otherwise) : tensor[static_cast<std::size_t>(i)];
}
inline long double at(numbers const& tensor, std::int64_t i) {
  return tensor.empty() ? 0 : static_cast<long double>(tensor[static_cast<std::size_t>(i)]);
}

/// One head: rows of S and J, and what it adds to the loss.
struct dual_head {
  problem const& p;
  dual_inputs const& in;
  cotangent_values const& up;
  std::int64_t h;
  std::vector<std::vector<dual>> S, J;
  dual loss;

  dual prior(std::int64_t j) const {
    bool const each = static_cast<std::int64_t>(in.prior.size()) > p.sizes.HV;
    return at(in.prior, each ? h * p.sizes.K + j : h, 1);
  }

  void write(std::vector<dual>& s, std::vector<dual>& J_row, dual const* k, std::vector<dual> const& alpha, dual beta, dual u) const {
    std::size_t const K = s.size();
    dual kk, km;
    std::vector<dual> R(K, dual(1)), m(K);
    for (std::size_t j = 0; j < K; ++j) {
      if (p.rule.keeps_diagonal()) R[j] = prior(static_cast<std::int64_t>(j)) + alpha[j] * J_row[j];
      m[j] = alpha[j] * s[j] / R[j];
      kk = kk + k[j] * k[j] / R[j];
      km = km + k[j] * m[j];
    }
    dual const step = p.rule.write == kind::delta ? dual(1) : dual(1) / (dual(1) + beta * kk);
    for (std::size_t j = 0; j < K; ++j) {
      if (p.rule.keeps_diagonal()) J_row[j] = alpha[j] * J_row[j] + beta * k[j] * k[j];
      switch (p.rule.write) {
        case kind::mamba2: case kind::mesa_net: case kind::palimpsa: s[j] = alpha[j] * s[j] + u * k[j]; break;
        case kind::longhorn: s[j] = m[j] + step * k[j] * (u - beta * k[j] * m[j]); break;
        case kind::delta: case kind::implicit_delta: s[j] = m[j] + step * k[j] * (u - beta * km); break;
        case kind::diagonal_kalman:
          s[j] = (m[j] + k[j] / R[j] * step * (u - beta * km)) * (prior(static_cast<std::int64_t>(j)) + J_row[j]);
          break;
      }
    }
  }

  void take(std::int64_t t) {
    recipe const& s = p.sizes;
    std::int64_t const token = t * s.HV + h, key = (t * s.HK + h / (s.HV / s.HK)) * s.K;
    dual const* const k = in.k.data() + key;
    std::vector<dual> x(in.q.begin() + key, in.q.begin() + key + s.K), alpha(x.size());
    for (std::size_t j = 0; j < alpha.size(); ++j) {
      bool const each = p.rule.forget == gates::key, constant = p.rule.forget == gates::constant;
      alpha[j] = exp(at(in.log_decay, constant ? h : each ? token * s.K + static_cast<std::int64_t>(j) : token, 0));
    }
    if (p.rule.keeps_full()) {
      auto lambda = J;
      for (std::size_t i = 0; i < alpha.size(); ++i)
        for (std::size_t j = 0; j < alpha.size(); ++j) {
          lambda[i][j] = J[i][j] = alpha[0] * J[i][j] + at(in.beta, token, 1) * k[i] * k[j];
          if (i == j) lambda[i][j] = J[i][j] + prior(static_cast<std::int64_t>(i));
        }
      x = solved(lambda, x);
    }
    for (std::int64_t i = 0; i < s.V; ++i) {
      dual const beta = at(in.beta, s.beta == beta_shape::channel ? token * s.V + i : token, 1);
      dual const v = in.v[static_cast<std::size_t>(token * s.V + i)], u = p.rule.preweighted ? v : beta * v;
      auto const r = static_cast<std::size_t>(i);
      std::vector<dual> unused;
      write(S[r], p.rule.keeps_diagonal() ? J[r] : unused, k, alpha, beta, u);
      dual mean, variance;
      for (std::size_t j = 0; j < x.size(); ++j) {
        dual const L = p.rule.keeps_diagonal() ? prior(static_cast<std::int64_t>(j)) + J[r][j] : dual(1);
        mean = mean + S[r][j] * x[j] / L;
        variance = variance + x[j] * x[j] / L;
      }
      long double const scale = static_cast<long double>(s.scale);
      loss = loss + dual(at(up.out, token * s.V + i) * scale) * mean;
      if (p.rule.keeps_diagonal()) loss = loss + dual(at(up.out_variance, token * s.V + i) * scale * scale) * variance;
    }
  }
};

/// Σ cotangent · output.
inline dual loss_of(problem const& p, cotangent_values const& up, dual_inputs const& in) {
  recipe const& s = p.sizes;
  dual loss;
  for (std::int64_t n = 0; n < p.sequences(); ++n)
    for (std::int64_t h = 0; h < s.HV; ++h) {
      std::int64_t const head = n * s.HV + h, rows = p.rule.keeps_precision() ? p.evidence_rows() : 0;
      auto const state = [&](std::vector<dual> const& initial, std::int64_t count) {
        std::vector<std::vector<dual>> m(static_cast<std::size_t>(count), std::vector<dual>(static_cast<std::size_t>(s.K)));
        for (std::int64_t i = 0; i < count; ++i)
          for (std::int64_t j = 0; j < s.K; ++j)
            m[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = at(initial, (head * count + i) * s.K + j, 0);
        return m;
      };
      dual_head one{p, in, up, h, state(in.initial_eta, s.V), state(in.initial_evidence, rows), {}};
      std::int64_t const first = p.cu_seqlens.empty() ? n * s.T : p.cu_seqlens[static_cast<std::size_t>(n)];
      std::int64_t const last = p.cu_seqlens.empty() ? first + s.T : p.cu_seqlens[static_cast<std::size_t>(n) + 1];
      for (std::int64_t t = first; t < last; ++t) one.take(t);
      auto const left = [&](std::vector<std::vector<dual>> const& m, numbers const& cotangent) {
        for (std::size_t i = 0; i < m.size(); ++i)
          for (std::size_t j = 0; j < m[i].size(); ++j)
            one.loss = one.loss + dual(at(cotangent, (head * static_cast<std::int64_t>(m.size()) + static_cast<std::int64_t>(i)) * s.K +
                                                         static_cast<std::int64_t>(j))) * m[i][j];
      };
      left(one.S, up.final_eta);
      left(one.J, up.final_evidence);
      loss = loss + one.loss;
    }
  return loss;
}

}  // namespace detail

/// The gradient of the loss by every element of one tensor. The evidence of a full memory: K² independent entries, symmetrised.
inline numbers right_gradient(problem const& p, cotangent_values const& up, dual_inputs in, dual_inputs::tensor dual_inputs::*which) {
  numbers gradient;
  for (dual& x : in.*which) {
    x.d = 1;
    gradient.push_back(static_cast<double>(detail::loss_of(p, up, in).d));
    x.d = 0;
  }
  if (which == &dual_inputs::initial_evidence && p.rule.keeps_full()) {
    auto const K = static_cast<std::size_t>(p.sizes.K);
    numbers const g = gradient;
    for (std::size_t i = 0; i < g.size(); ++i) {
      std::size_t const inner = i % (K * K), mirror = i - inner + inner % K * K + inner / K;
      gradient[i] = 0.5 * (g[i] + g[mirror]);
    }
  }
  return gradient;
}

/// A problem's inputs as dual numbers; initial states are there even where the problem leaves them out.
inline dual_inputs dual_of(problem const& p) {
  auto const lift = [](numbers const& x) { return dual_inputs::tensor(x.begin(), x.end()); };
  dual_inputs in{lift(p.q), lift(p.k), lift(p.v), lift(p.beta), lift(p.log_decay), lift(p.prior), lift(p.initial_eta),
                 lift(p.initial_evidence)};
  std::int64_t const heads = p.sequences() * p.sizes.HV;
  if (in.initial_eta.empty()) in.initial_eta.resize(static_cast<std::size_t>(heads * p.sizes.V * p.sizes.K));
  if (in.initial_evidence.empty() && p.rule.keeps_precision())
    in.initial_evidence.resize(static_cast<std::size_t>(heads * p.evidence_rows() * p.sizes.K));
  return in;
}

/// All gradients.
inline gradient_values right_gradients(problem const& p, cotangent_values const& up) {
  dual_inputs const in = dual_of(p);
  auto const by = [&](dual_inputs::tensor dual_inputs::*which) { return right_gradient(p, up, in, which); };
  return {by(&dual_inputs::q),         by(&dual_inputs::k),     by(&dual_inputs::v),           by(&dual_inputs::beta),
          by(&dual_inputs::log_decay), by(&dual_inputs::prior), by(&dual_inputs::initial_eta), by(&dual_inputs::initial_evidence)};
}

}  // namespace palimpsa_test
