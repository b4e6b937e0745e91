#pragma once
/// @file
/// The recurrence, in reverse. One value row takes back one token: from the derivatives of a loss with respect to what the token left
/// (dη, dJ) and what was read (y, z), those with respect to what it met. dx stands for ∂loss/∂x.
///
/// The write as a correction (recurrence.hpp has the forward lines; η, J before the token, own = β k_j² r_j, all = Σ_j own_j):
///
///     forward  R = prior + αJ,  r = 1/R,  m = αη r,  d = u - β c,  μ = m + s k r d,  J' = αJ + β k²,  η' = μ (prior + J')
///     read     dμ = dη' (prior + J') + y q              dJ' += dη' μ - z q²/(prior + J')²
///              dq = y μ + 2 z q/(prior + J')            dprior += the same
///     write    du = Σ dμ s k r                          dc = -β dμ s k r         dβ -= Σ dμ s k r c
///              down = dμ k r d ∂s/∂own + Σ dμ k r d ∂s/∂all                      through own and all
///              seen = dc ∂c/∂own + Σ dc ∂c/∂all                                  through k m and k·m
///              dk = dμ s r d + m seen + 2 β k (r down + dJ')                     dβ += Σ k² (r down + dJ')
///     forget   dm = dμ + k seen       r dr = dμ s k r d + own down + m dm        dR = -r (r dr)
///              dη = α r dm            dJ = α (dJ' + dR)                          dprior += dR
///              dα = Σ (r dm η + (dJ' + dR) J)
///
/// The write as a bare sum (rule::adds; after the token, r = 1/(prior + J'), μ = η' r):
///
///     read     dη' += y q r           dJ' -= e,  dprior -= e,  e = (y q r) μ + z (q r)²
///              dq = y μ + 2 z q r
///     write    du = Σ dη' k           dβ += Σ dJ' k²           dk = dη' u + 2 β k dJ'
///     forget   dη = α dη'             dJ = α dJ'               dα = Σ (dη' η + dJ' J)
///
/// Old states are handed in, never recovered by dividing by α, so that gates down to -inf lose nothing. r² is never formed: 1/R² can
/// overflow where (1/R)(μ/R) does not. Host and device, no allocation, no exceptions.

#include "palimpsa/detail/config.hpp"
#include "palimpsa/recurrence.hpp"

namespace palimpsa {

/// What the loss asks of the read of a row: its derivatives with respect to Σ_j μ_j q_j and Σ_j q_j²/(prior + J_j).
template <class T>
struct read_cotangent {
  T mean;      ///< y = scale · ∂loss/∂out
  T variance;  ///< z = scale² · ∂loss/∂out_variance; not read unless asked for
};

/// Derivatives of the loss that belong to one key of one row; a head sums them over its rows.
template <class T>
struct key_cotangent {
  T query;  ///< dq_j; for a full memory dx_j, x = Λ⁻¹q
  T key;    ///< dk_j
  T alpha;  ///< dα_j; zero unless gates are per key
};

/// Derivatives of the loss that belong to a whole row.
template <class T>
struct row_cotangent {
  T v;      ///< dv
  T beta;   ///< dβ
  T alpha;  ///< dα of the head's gate, this row's share; zero where gates are per key
  T prior;  ///< dprior, this row's share; zero unless Rule::keeps_diagonal
  PALIMPSA_HD PALIMPSA_INLINE friend row_cotangent operator+(row_cotangent a, row_cotangent b) {
    return {a.v + b.v, a.beta + b.beta, a.alpha + b.alpha, a.prior + b.prior};
  }
};

namespace detail {

/// Where dα of a cell goes: to its key, or to the head's sum.
template <class Rule>
inline constexpr bool gates_keys = Rule::forget_type::scope == gate_scope::key;

/// The write as a bare sum, in reverse. Returns du in place of dv.
template <class Rule, bool Variance, class Lanes, class T, class S, class Emit>
PALIMPSA_HD PALIMPSA_INLINE row_cotangent<T> add_adjoint(Lanes lanes, T const* eta, T const* J, T* d_eta, T* d_J, token<S> x,
                                                         T u, T beta, S prior, read_cotangent<T> y, Emit emit) {
  return lanes.template sum<row_cotangent<T>>([=](int j) PALIMPSA_INLINE_LAMBDA {
    S const a = retained<Rule>(x, j), k = x.key[j], q = x.query[j];
    T const eta_now = a * eta[j] + u * k;
    T g = d_eta[j], dq, dk, d_alpha;
    row_cotangent<T> row{};
    if constexpr (Rule::keeps_diagonal) {
      T const r = lanes.reciprocal(prior + (a * J[j] + beta * (k * k)));
      T const mu = eta_now * r, pulled = y.mean * q * r;
      T e = pulled * mu;
      dq = y.mean * mu;
      if constexpr (Variance) {
        T const spread = y.variance * (q * r);
        e = e + spread * (q * r);
        dq = dq + 2 * spread;
      }
      g = g + pulled;
      T const h = d_J[j] - e;
      row.prior = -e;
      row.beta = h * (k * k);
      dk = g * u + beta * h * (2 * k);
      d_alpha = g * eta[j] + h * J[j];
      d_J[j] = a * h;
    } else {
      g = g + y.mean * q;
      dq = y.mean * eta_now;
      dk = g * u;
      d_alpha = g * eta[j];
    }
    row.v = g * k;
    if constexpr (!gates_keys<Rule>) row.alpha = d_alpha;
    emit(j, key_cotangent<T>{dq, dk, gates_keys<Rule> ? d_alpha : T{}});
    d_eta[j] = a * g;
    return row;
  });
}

/// What the forward write knew of a cell, and dμ.
template <class T, class R>
struct cell {
  R r;      ///< 1/R
  T m;      ///< the mean after forgetting
  T own;    ///< β k² r
  T c, s;   ///< evidence and gain
  T d;      ///< u - β c
  T mu;     ///< the mean after the write
  T J;      ///< the evidence after the write
  T d_mu;   ///< dμ
};

/// The write as a correction of the mean, in reverse. Returns du in place of dv.
template <class Rule, bool Variance, class Lanes, class T, class S, class Emit>
PALIMPSA_HD PALIMPSA_INLINE row_cotangent<T> correct_adjoint(Lanes lanes, T const* eta, T const* J, T* d_eta, T* d_J,
                                                             token<S> x, T u, T beta, S prior, read_cotangent<T> y, Emit emit) {
  using evidence = typename Rule::evidence_type;
  using gain = typename Rule::gain_type;
  auto const covariance = [=](int j) PALIMPSA_INLINE_LAMBDA {  // 1/R_j
    if constexpr (Rule::keeps_diagonal) {
      return lanes.reciprocal(prior + retained<Rule>(x, j) * J[j]);
    } else {
      return S(1);
    }
  };
  using R = decltype(covariance(0));
  auto const mean = [=](int j, R r) PALIMPSA_INLINE_LAMBDA { return retained<Rule>(x, j) * eta[j] * r; };

  T prediction{}, total{};  // k·m and β kᵀR⁻¹k
  if constexpr (evidence::sees_all)
    prediction = lanes.template sum<T>([=](int j) PALIMPSA_INLINE_LAMBDA { return x.key[j] * mean(j, covariance(j)); });
  if constexpr (gain::sees_all)
    total = beta * lanes.template sum<R>(
                       [=](int j) PALIMPSA_INLINE_LAMBDA { return x.key[j] * x.key[j] * covariance(j); });

  auto const remember = [=](int j) PALIMPSA_INLINE_LAMBDA {
    S const k = x.key[j];
    cell<T, R> z{};
    z.r = covariance(j);
    z.m = mean(j, z.r);
    z.own = beta * (k * k * z.r);
    z.c = evidence::seen(k * z.m, prediction);
    z.s = gain::at(lanes, z.own, total);
    z.d = u - beta * z.c;
    z.mu = z.m + z.s * (k * z.r) * z.d;
    z.d_mu = d_eta[j];
    if constexpr (Rule::keeps_diagonal) {
      z.J = retained<Rule>(x, j) * J[j] + beta * (k * k);
      z.d_mu = z.d_mu * (prior + z.J);
    }
    z.d_mu = z.d_mu + y.mean * x.query[j];
    return z;
  };

  T d_prediction{}, d_total{};  // through k·m and through all = β kᵀR⁻¹k
  if constexpr (evidence::sees_all)
    d_prediction = -beta * lanes.template sum<T>([=](int j) PALIMPSA_INLINE_LAMBDA {
      cell<T, R> const z = remember(j);
      return z.d_mu * z.s * (x.key[j] * z.r) * evidence::slope(x.key[j] * z.m, prediction).all;
    });
  if constexpr (gain::sees_all)
    d_total = lanes.template sum<T>([=](int j) PALIMPSA_INLINE_LAMBDA {
      cell<T, R> const z = remember(j);
      return z.d_mu * (x.key[j] * z.r) * z.d * gain::slope(lanes, z.own, total).all;
    });

  return lanes.template sum<row_cotangent<T>>([=](int j) PALIMPSA_INLINE_LAMBDA {
    S const a = retained<Rule>(x, j), k = x.key[j], q = x.query[j];
    cell<T, R> const z = remember(j);
    T const moved = z.d_mu * (k * z.r);  // dμ k r
    T const d_u = moved * z.s;
    T const down = moved * z.d * gain::slope(lanes, z.own, total).own + d_total;
    T const seen = d_prediction - beta * d_u * evidence::slope(k * z.m, prediction).own;
    T const d_m = z.d_mu + k * seen;
    T const e = d_m * z.r;  // with respect to αη
    T dq = y.mean * z.mu, square = z.r * down, d_alpha = e * eta[j];
    row_cotangent<T> row{};
    row.v = d_u;
    if constexpr (Rule::keeps_diagonal) {
      T d_precision = d_eta[j] * z.mu;
      if constexpr (Variance) {
        T const scaled = q * lanes.reciprocal(prior + z.J), spread = y.variance * scaled;
        d_precision = d_precision - spread * scaled;
        dq = dq + 2 * spread;
      }
      T const h = d_J[j] + d_precision;
      T const d_R = -(z.r * (d_u * z.d + z.own * down + z.m * d_m));
      square = square + h;
      row.prior = d_precision + d_R;
      d_alpha = d_alpha + (h + d_R) * J[j];
      d_J[j] = a * (h + d_R);
    }
    row.beta = k * k * square - d_u * z.c;
    if constexpr (!gates_keys<Rule>) row.alpha = d_alpha;
    emit(j, key_cotangent<T>{dq, z.d_mu * z.s * z.r * z.d + z.m * seen + beta * square * (2 * k),
                             gates_keys<Rule> ? d_alpha : T{}});
    d_eta[j] = a * e;
    return row;
  });
}

}  // namespace detail

/// Takes one token back from one value row (or a pack of rows), any rule: the reverse of observe().
///
/// @param lanes  who walks the keys
/// @param eta    K cells of η before the token
/// @param J      K cells of the diagonal evidence before the token; not read unless Rule::keeps_diagonal
/// @param d_eta  K cells: in ∂loss/∂η after the token (without its read), out ∂loss/∂η before it
/// @param d_J    the same for J; not touched unless Rule::keeps_diagonal
/// @param x      key, query (for a full memory Λ⁻¹q) and retained share, as observe() had them
/// @param v,beta,prior  as observe() had them
/// @param y      what the loss asks of the read; y.variance is not read unless Variance
/// @param emit   emit(j, key_cotangent) is called once for every key of this lane, in order
/// @return       what belongs to the row. alpha is ∂loss/∂α: the caller multiplies by forget::slope
template <class Rule, bool Variance = false, class Lanes, class T, class S, class Emit>
PALIMPSA_HD PALIMPSA_INLINE row_cotangent<T> observe_adjoint(Lanes lanes, T const* eta, T const* J, T* d_eta, T* d_J,
                                                             token<S> x, T v, T beta, S prior, read_cotangent<T> y, Emit emit) {
  static_assert(!Variance || Rule::keeps_diagonal,
                "palimpsa::observe_adjoint: only a diagonal memory has a variance per row");
  using weighting = typename Rule::weighting_type;
  T const u = weighting::write(beta, v);
  row_cotangent<T> row;
  if constexpr (Rule::adds) {
    row = detail::add_adjoint<Rule, Variance>(lanes, eta, J, d_eta, d_J, x, u, beta, prior, y, emit);
  } else {
    row = detail::correct_adjoint<Rule, Variance>(lanes, eta, J, d_eta, d_J, x, u, beta, prior, y, emit);
  }
  T const d_u = row.v;
  row.v = d_u * weighting::slope_v(beta, v);
  row.beta = row.beta + d_u * weighting::slope_beta(beta, v);
  return row;
}

}  // namespace palimpsa
