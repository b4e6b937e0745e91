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
#include "palimpsa/exact_write.hpp"
#include "palimpsa/fused.hpp"
#include "palimpsa/lanes.hpp"
#include "palimpsa/row_cell.hpp"

namespace palimpsa::inline PALIMPSA_ABI {
namespace detail {

/// The write as a bare sum of natural parameters: η ← αη + u k, J ← αJ + β k²; the read divides by prior + J.
template <class Rule, bool Variance, class Lanes, class T, class S>
PALIMPSA_HD PALIMPSA_INLINE answer<T, Variance> add(Lanes lanes, T* eta, T* J, token<S> x, T u, T beta, S prior) {
  return lanes.template sum<answer<T, Variance>>([=](int j, answer<T, Variance> sums) PALIMPSA_INLINE_LAMBDA {
    S const a = retained<Rule>(x, j), k = x.key[j];
    eta[j] = fused(u, k, a * eta[j]);
    if constexpr (Rule::keeps_diagonal) {
      J[j] = fused(beta, k * k, a * J[j]);
      T const r = lanes.reciprocal(prior + J[j]);
      return read<Variance>(eta[j] * r, r, x.query[j], sums);
    } else {
      return read<false>(eta[j], T{}, x.query[j], sums);
    }
  });
}

/// The write as a correction of the mean, for any evidence and gain: μ = m + s (k/R)(u - β c).
template <class Rule, bool Variance, class Lanes, class T, class S>
PALIMPSA_HD PALIMPSA_INLINE answer<T, Variance> correct(Lanes lanes, T* eta, T* J, token<S> x, T u, T beta, S prior) {
  using evidence = typename Rule::evidence_type;
  using gain = typename Rule::gain_type;
  remembered<Rule, Lanes, T, S> const before{lanes, eta, J, x, prior};
  using R = decltype(before.covariance(0));

  T prediction{}, total{};  // k·m and β kᵀR⁻¹k
  if constexpr (evidence::sees_all)
    prediction = lanes.template sum<T>([=](int j, T sum) PALIMPSA_INLINE_LAMBDA {
      return fused(x.key[j], before.mean(j, before.covariance(j)), sum);
    });
  if constexpr (gain::sees_all)
    total = beta * lanes.template sum<R>([=](int j, R sum) PALIMPSA_INLINE_LAMBDA {
      return fused(x.key[j] * before.covariance(j), x.key[j], sum);
    });

  return lanes.template sum<answer<T, Variance>>([=](int j, answer<T, Variance> sums) PALIMPSA_INLINE_LAMBDA {
    S const k = x.key[j];
    R const r = before.covariance(j);
    T const m = before.mean(j, r);
    T const c = evidence::seen(k * m, prediction), s = gain::at(lanes, beta * (k * k * r), total);
    return leave<Rule, Variance>(before, j, fused(s * (k * r), fused(-beta, c, u), m), beta, eta, J, sums);
  });
}

}  // namespace detail

/// One token, one value row (or a pack of rows), any rule: forget, write, read. eta and J are updated in place.
///
/// @param lanes  who walks the keys
/// @param eta    K cells of η, this lane's
/// @param J      K cells of the diagonal evidence, this lane's; not touched unless Rule::keeps_diagonal
/// @param x      key, query and retained share: a token, or a known_token
/// @param v      the row's value
/// @param beta   the row's likelihood precision, ≥ 0
/// @param prior  the head's prior precision, > 0; not read unless Rule::keeps_diagonal
/// @return       Σ_j μ_j q_j and, if Variance (rules with a diagonal memory only), Σ_j q_j²/(prior + J_j)
template <class Rule, bool Variance = false, class Lanes, class T, class Token, class S>
PALIMPSA_HD PALIMPSA_INLINE answer<T, Variance> observe(Lanes lanes, T* eta, T* J, Token x, T v, T beta, S prior) {
  static_assert(!Variance || Rule::keeps_diagonal, "palimpsa::observe: only a diagonal memory has a variance per row");
  T const u = Rule::weighting_type::write(beta, v);
  if constexpr (Rule::adds) {
    return detail::add<Rule, Variance>(lanes, eta, J, static_cast<token<S>>(x), u, beta, prior);
  } else if constexpr (detail::exact_write<Rule> && Rule::evidence_type::sees_all && detail::brings_squares<Token>) {
    return detail::exact_but_lead<Rule>(lanes, eta, x, u, beta);
  } else if constexpr (detail::exact_write<Rule>) {
    return detail::exact<Rule, Variance>(lanes, eta, J, x, u, beta, prior);
  } else {
    return detail::correct<Rule, Variance>(lanes, eta, J, static_cast<token<S>>(x), u, beta, prior);
  }
}

}  // namespace palimpsa
