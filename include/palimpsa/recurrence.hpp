#pragma once
/// @file
/// The recurrence. One value row of a memory sees one token: it forgets, writes and is read.
///
///     forget   η_j ← α η_j,   J_j ← α J_j                      α = exp(log_decay), one a head or one a key
///              R_j = prior + J_j   (1 where nothing is kept)    the precision remembered
///              m_j = η_j / R_j                                   the mean after forgetting
///     write    μ_j = m_j + s_j (k_j / R_j)(u - β c_j)           c_j: evidence   s_j: gain   u = β v, or v preweighted
///              J_j ← J_j + β k_j²,   η_j ← μ_j (prior + J_j)
///     read     o = Σ_j μ_j q_j       variance w = Σ_j q_j² / (prior + J_j)
///
/// Every rule of the family is this with another choice of c, s and R:
///
///     Mamba2             R = 1              c = 0         s = 1
///     Longhorn           R = 1              c = k_j m_j   s = 1/(1 + β kᵀk)
///     DeltaNet           R = 1              c = k·m       s = 1, or 1/(1 + β kᵀk)
///     Palimpsa           R = prior + αJ     c = k_j m_j   s = 1/(1 + β k_j²/R_j)
///     DiagonalKalman     R = prior + αJ     c = k·m       s = 1/(1 + β kᵀR⁻¹k)
///     MesaNet            Λ = prior + αJ, K×K, kept by the head, which hands its rows x = Λ⁻¹q in place of q
///
/// Where the correction and the gain cancel (rule::adds) the same write is the bare sum of natural parameters,
/// η ← αη + u k, with one division a cell (Palimpsa) or none (Mamba2, MesaNet).
///
/// T is a scalar, or a pack of rows that run abreast; Lanes is who walks the keys. Host and device, no allocation, no exceptions.

#include "palimpsa/detail/config.hpp"
#include "palimpsa/lanes.hpp"
#include "palimpsa/policies/forget.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// What one token offers to all rows of a head. Arrays over the keys of this lane.
template <class S>
struct token {
  S const* key;    ///< k
  S const* query;  ///< q; for a full memory x = Λ⁻¹q
  S const* alpha;  ///< retained share: one value, or one per key (gate_scope::key)
};

/// What a row answers: Σ_j μ_j q_j and, on request, Σ_j q_j²/(prior + J_j). The caller applies scale and scale².
template <class T, bool Variance>
struct answer;

/// The mean alone.
template <class T>
struct answer<T, false> {
  T mean;  ///< Σ_j μ_j q_j
  /// Over disjoint keys.
  PALIMPSA_HD PALIMPSA_INLINE friend answer operator+(answer a, answer b) { return {a.mean + b.mean}; }
};

/// The mean and the variance of the read.
template <class T>
struct answer<T, true> {
  T mean;      ///< Σ_j μ_j q_j
  T variance;  ///< Σ_j q_j² / (prior + J_j)
  /// Over disjoint keys.
  PALIMPSA_HD PALIMPSA_INLINE friend answer operator+(answer a, answer b) {
    return {a.mean + b.mean, a.variance + b.variance};
  }
};

namespace detail {

/// α for key j: the head's, or the key's own.
template <class Rule, class S>
PALIMPSA_HD PALIMPSA_INLINE S retained(token<S> x, int j) {
  if constexpr (Rule::forget_type::scope == gate_scope::key) {
    return x.alpha[j];
  } else {
    return x.alpha[0];
  }
}

/// One cell's share of the read, μ_j q_j and q_j² r_j.
template <bool Variance, class T, class S>
PALIMPSA_HD PALIMPSA_INLINE answer<T, Variance> read(T mu, T r, S q) {
  if constexpr (Variance) {
    return {mu * q, r * q * q};  // q² alone may leave the range that r q² is in
  } else {
    return {mu * q};
  }
}

/// The write as a bare sum of natural parameters: η ← αη + u k, J ← αJ + β k²; the read divides by prior + J.
template <class Rule, bool Variance, class Lanes, class T, class S>
PALIMPSA_HD PALIMPSA_INLINE answer<T, Variance> add(Lanes lanes, T* eta, T* J, token<S> x, T u, T beta, S prior) {
  return lanes.template sum<answer<T, Variance>>([=](int j) PALIMPSA_INLINE_LAMBDA {
    S const a = retained<Rule>(x, j), k = x.key[j];
    eta[j] = a * eta[j] + u * k;
    if constexpr (Rule::keeps_diagonal) {
      J[j] = a * J[j] + beta * (k * k);
      T const r = lanes.reciprocal(prior + J[j]);
      return read<Variance>(eta[j] * r, r, x.query[j]);
    } else {
      return read<false>(eta[j], T{}, x.query[j]);
    }
  });
}

/// The write as a correction of the mean: μ = m + s (k/R)(u - β c).
template <class Rule, bool Variance, class Lanes, class T, class S>
PALIMPSA_HD PALIMPSA_INLINE answer<T, Variance> correct(Lanes lanes, T* eta, T* J, token<S> x, T u, T beta, S prior) {
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

  return lanes.template sum<answer<T, Variance>>([=](int j) PALIMPSA_INLINE_LAMBDA {
    S const k = x.key[j];
    R const r = covariance(j);
    T const m = mean(j, r);
    T const c = evidence::seen(k * m, prediction), s = gain::at(lanes, beta * (k * k * r), total);
    T const mu = m + s * (k * r) * (u - beta * c);
    if constexpr (Rule::keeps_diagonal) {
      J[j] = retained<Rule>(x, j) * J[j] + beta * (k * k);
      T const precision = prior + J[j];
      eta[j] = mu * precision;
      if constexpr (Variance)
        return read<true>(mu, lanes.reciprocal(precision), x.query[j]);
      else
        return read<false>(mu, mu, x.query[j]);
    } else {
      eta[j] = mu;
      return read<false>(mu, mu, x.query[j]);
    }
  });
}

}  // namespace detail

/// One token, one value row (or a pack of rows), any rule: forget, write, read. eta and J are updated in place.
///
/// @param lanes  who walks the keys
/// @param eta    K cells of η, this lane's
/// @param J      K cells of the diagonal evidence, this lane's; not touched unless Rule::keeps_diagonal
/// @param x      key, query and retained share
/// @param v      the row's value
/// @param beta   the row's likelihood precision, ≥ 0
/// @param prior  the head's prior precision, > 0; not read unless Rule::keeps_diagonal
/// @return       Σ_j μ_j q_j and, if Variance (rules with a diagonal memory only), Σ_j q_j²/(prior + J_j)
template <class Rule, bool Variance = false, class Lanes, class T, class S>
PALIMPSA_HD PALIMPSA_INLINE answer<T, Variance> observe(Lanes lanes, T* eta, T* J, token<S> x, T v, T beta, S prior) {
  static_assert(!Variance || Rule::keeps_diagonal, "palimpsa::observe: only a diagonal memory has a variance per row");
  T const u = Rule::weighting_type::write(beta, v);
  if constexpr (Rule::adds) {
    return detail::add<Rule, Variance>(lanes, eta, J, x, u, beta, prior);
  } else {
    return detail::correct<Rule, Variance>(lanes, eta, J, x, u, beta, prior);
  }
}

}  // namespace palimpsa
