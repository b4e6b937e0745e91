#pragma once
// Right values of every point of the family in 113 bits, from the line that defines it, and their gradients by a tape. Shares nothing
// with the library.
//
//   R = prior + αJ (1 where nothing is kept)    m = αη/R    c: evidence    s: gain
//   μ = m + s (k/R)(u - β c)    J ← αJ + β k²    η ← μ (prior + J)    o = scale μ·q    w = scale² Σ q²/(prior + J)
//   all of Λ kept:  η ← αη + u kᵀ    J ← αJ + β k kᵀ    o = scale · η Λ⁻¹q    w = scale² qᵀΛ⁻¹q

#include <algorithm>
#include <utility>

#include "edge/edge_problem.hpp"
#include "edge/tape.hpp"

namespace palimpsa_test {

/// x = Λ⁻¹b by elimination; Λ is positive definite.
template <class X> std::vector<X> eliminate(std::vector<X> a, std::vector<X> b) {
  std::size_t const n = b.size();
  for (std::size_t c = 0; c < n; ++c)
    for (std::size_t i = c + 1; i < n; ++i) {
      X const f = a[i * n + c] / a[c * n + c];
      for (std::size_t j = c + 1; j < n; ++j) a[i * n + j] = a[i * n + j] - f * a[c * n + j];
      b[i] = b[i] - f * b[c];
    }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) b[i] = b[i] - a[i * n + j] * b[j];
    b[i] = b[i] / a[i * n + i];
  }
  return b;
}

/// The inputs of a problem as numbers of kind X; alpha is the gate of every token (and key).
template <class X> struct oracle_inputs {
  std::vector<X> q, k, v, beta, alpha, prior, eta, J;
};

/// Runs the tokens. eta and J are updated in place, out and variance are returned. `kept(x, t, i, j)` is what the state
/// remembers of cell (i, j) after token t: x, or a rounding of it.
template <class X, class Kept>
std::pair<std::vector<X>, std::vector<X>> oracle_scan(axes r, edge_problem const& p, oracle_inputs<X>& x, Kept kept) {
  auto const T = static_cast<std::size_t>(p.T), K = static_cast<std::size_t>(p.K), V = static_cast<std::size_t>(p.V);
  std::vector<X> out(T * V), variance(r.memory == keeps::nothing ? 0 : T * V);
  X const one = static_cast<X>(1), scale = static_cast<X>(p.scale);
  bool const diagonal = r.memory == keeps::diagonal, full = r.memory == keeps::full;
  for (std::size_t t = 0; t < T; ++t) {
    auto const alpha = [&](std::size_t j) { return x.alpha[x.alpha.size() == T ? t : t * K + j]; };
    auto const prior = [&](std::size_t j) { return x.prior[x.prior.size() == 1 ? 0 : j]; };
    X const *const k = &x.k[t * K], *const q = &x.q[t * K];
    std::vector<X> read(q, q + K);
    if (full) {
      for (std::size_t i = 0; i < K; ++i)
        for (std::size_t j = 0; j < K; ++j)
          x.J[i * K + j] = kept(alpha(0) * x.J[i * K + j] + x.beta[t] * k[i] * k[j], t, V + (std::max)(i, j), (std::min)(i, j));
      std::vector<X> lambda = x.J;
      for (std::size_t j = 0; j < K; ++j) lambda[j * K + j] = lambda[j * K + j] + prior(j);
      read = eliminate(lambda, read);
    }
    for (std::size_t i = 0; i < V; ++i) {
      X const beta = x.beta[p.beta_per_channel ? t * V + i : t], v = x.v[t * V + i], u = r.preweighted ? v : beta * v;
      X *const eta = &x.eta[i * K], *const J = diagonal ? &x.J[i * K] : nullptr;
      std::vector<X> R(K, one), m(K);
      X prediction = X(), total = X(), mean = X(), spread = X();
      for (std::size_t j = 0; j < K; ++j) {
        if (diagonal) R[j] = prior(j) + alpha(j) * J[j];
        m[j] = alpha(j) * eta[j] / R[j];
        prediction = prediction + k[j] * m[j];
        total = total + beta * k[j] * k[j] / R[j];
      }
      for (std::size_t j = 0; j < K; ++j) {
        X const c = r.evidence == sees::all ? prediction : r.evidence == sees::own ? k[j] * m[j] : X();
        X const own = beta * k[j] * k[j] / R[j];
        X const s = r.gain == moves::exact ? one / (one + total) : r.gain == moves::elementwise ? one / (one + own) : one;
        X const mu = full ? m[j] + k[j] * u : m[j] + s * (k[j] / R[j]) * (u - beta * c);
        if (diagonal) J[j] = kept(alpha(j) * J[j] + beta * k[j] * k[j], t, V + i, j);
        eta[j] = kept(diagonal ? mu * (prior(j) + J[j]) : mu, t, i, j);
        mean = mean + mu * read[j];
        if (full) spread = spread + q[j] * read[j];
        if (diagonal) spread = spread + q[j] * q[j] / (prior(j) + J[j]);
      }
      out[t * V + i] = scale * mean;
      if (r.memory != keeps::nothing) variance[t * V + i] = scale * scale * spread;
    }
  }
  return {out, variance};
}

/// Everything a rule answers. `nudge(x)` is applied to every input, gate and cotangent: the identity, or one rounding; kept as above.
template <class Nudge, class Kept> answers_of<quad> quad_answers(axes r, edge_problem const& p, Nudge nudge, Kept kept) {
  the_tape().clear();
  auto const inputs = [&](numbers const& from) {
    std::vector<traced> x;
    for (double y : from) x.push_back(traced::input(nudge(quad(y))));
    return x;
  };
  oracle_inputs<traced> x{inputs(p.q), inputs(p.k), inputs(p.v), inputs(p.beta), {}, inputs(p.prior), inputs(p.eta), inputs(p.J)};
  auto const K = static_cast<std::size_t>(p.K);
  for (std::size_t i = 0; i < x.J.size() && r.memory == keeps::full; ++i)  // a symmetric matrix stays one
    if (i / K < i % K) x.J[i].value = x.J[i % K * K + i / K].value;
  auto const T = static_cast<std::size_t>(p.T);
  if (r.forget == gates::none) x.alpha.assign(T, traced(quad(1)));
  for (double g : p.log_decay) x.alpha.push_back(traced::input(nudge(quad_exp(g))));
  std::vector<traced> const gate = x.alpha;
  if (r.forget == gates::constant) x.alpha.assign(T, gate[0]);
  oracle_inputs<traced> const given = x;
  auto const [out, variance] = oracle_scan(r, p, x, kept);

  traced loss;
  auto const ask = [&](std::vector<traced> const& y, numbers const& cotangent) {
    for (std::size_t i = 0; i < y.size() && !cotangent.empty(); ++i) loss = loss + y[i] * traced(nudge(quad(cotangent[i])));
  };
  ask(out, p.d_out), ask(variance, p.d_variance), ask(x.eta, p.d_eta), ask(x.J, p.d_J);
  std::vector<quad> const d = the_tape().slopes_of(loss.id);

  answers_of<quad> a;
  auto const values = [&](result to, std::vector<traced> const& y) {
    for (traced z : y) at(a, to).push_back(z.value);
  };
  auto const slopes = [&](result to, std::vector<traced> const& y) {
    for (traced z : y) at(a, to).push_back(d[static_cast<std::size_t>(z.id)]);
  };
  values(result::out, out), values(result::variance, variance), values(result::eta, x.eta), values(result::J, x.J);
  slopes(result::d_q, given.q), slopes(result::d_k, given.k), slopes(result::d_v, given.v), slopes(result::d_beta, given.beta);
  slopes(result::d_prior, given.prior), slopes(result::d_eta, given.eta), slopes(result::d_J, given.J);
  if (r.forget != gates::none) slopes(result::d_log_decay, gate);
  for (std::size_t i = 0; i < at(a, result::d_log_decay).size(); ++i) at(a, result::d_log_decay)[i] *= gate[i].value;
  if (r.memory == keeps::full) {  // the K² entries of a symmetric matrix: symmetrised
    auto& g = at(a, result::d_J);
    for (std::size_t i = 0; i < K; ++i)
      for (std::size_t j = 0; j < i; ++j) g[i * K + j] = g[j * K + i] = (g[i * K + j] + g[j * K + i]) / 2;
  }
  return a;
}

}  // namespace palimpsa_test
