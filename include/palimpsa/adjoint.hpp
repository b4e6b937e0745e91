#pragma once
/// @file
/// The recurrence, in reverse. One value row takes back one token: from the derivatives of a loss with respect to what the token left
/// (dη, dJ) and what was read (y, z), those with respect to what it met. dx stands for ∂loss/∂x.
///
/// The write as a correction (recurrence.hpp has the forward lines; η, J before the token; g is dη' as it comes in):
///
///     forward  R = prior + αJ,  r = 1/R,  m = αη r,  own = β k² r,  all = Σ own,  d = u - β c,  J' = αJ + β k²
///              w = αη + s k d,  so that  μ = w r  and  η' = μ (prior + J') = w (1 + own)
///     read     dw = g (1 + own) + y q r                 dJ' -= e,  dprior -= e,  e = z q²/(prior + J')²
///              dq = y μ + 2 z q/(prior + J')
///     write    du = Σ dw s k                            dc = -β dw s k           dβ -= Σ dw s k c
///              down = g w + dw k d ∂s/∂own + Σ dw k d ∂s/∂all                    with respect to own
///              seen = dc ∂c/∂own + Σ dc ∂c/∂all                                  with respect to k m and k·m
///              dk = dw s d + m seen + 2 β k (r down + dJ')                       dβ += Σ k² (r down + dJ')
///     forget   dR = -r (y q μ + own down + m k seen)    dprior += dR
///              dη = α (dw + r k seen)                   dJ = α (dJ' + dR)
///              dα = Σ (dw + r k seen) η + (dJ' + dR) J
///
/// (Through μ (prior + J') the terms of dη' would meet in dprior with opposite signs, and all but a share `own` of them would cancel.)
/// Where nothing is remembered r = 1 and η' = μ = w: g stands for g (1 + own), and no R and no J.
///
/// The same with the exact gain (h = ∂loss/∂μ = g (prior + J') + y q;  A = Σ h k r;  o = Σ_{i≠j} own_i,  kept = s (1 + o);
/// G = dJ' + μ g, the slope along J' at a fixed mean; _ marks a sum over the other keys), without differences of nearly equal numbers:
///
///     c = k·m  dm = kept h - s β k A_                   dk = s r d dm - s β A μ + 2 β k G
///              ρ = -s (o own g + (1 + o) y q r - s⁻¹ r s β k A_),     which is g - r dm
///     c = k m  dm = kept h                              dk = s r (kept h d - β k h μ - 2 s β k D_) + 2 β k G,   D = Σ h k r d
///              ρ = -(s o own g + kept y q r)            and s² own r D_ on top of dprior
///     both     du = s A      dβ = s² Σ h k r ((∂u/∂β - c) + Σ k² r · (β ∂u/∂β - u)) + Σ k² G
///              dprior = Σ μ ρ - e      dη = α r dm      dJ = α (dJ' + dprior)      dα = Σ r dm η + (dJ' + dprior) J
///
/// The write as a bare sum (rule::adds; after the token, r = 1/(prior + J'), μ = η' r):
///
///     read     dη' += y q r           dJ' -= e,  dprior -= e,  e = (y q r) μ + z (q r)²
///              dq = y μ + 2 z q r
///     write    du = Σ dη' k           dβ = du ∂u/∂β + Σ dJ' k²           dk = dη' u + 2 β k dJ'
///     forget   dη = α dη'             dJ = α dJ'               dα = Σ (dη' η + dJ' J)
///
/// Old states are handed in, never recovered by dividing by α, so that gates down to -inf lose nothing. r² is never formed: 1/R² can
/// overflow where (1/R)(μ/R) does not. Host and device, no allocation, no exceptions.

#include <type_traits>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/exact_adjoint.hpp"
#include "palimpsa/fused.hpp"
#include "palimpsa/policies/evidence.hpp"
#include "palimpsa/policies/gain.hpp"
#include "palimpsa/recurrence.hpp"
#include "palimpsa/row_cotangent.hpp"

namespace palimpsa::inline PALIMPSA_ABI {
namespace detail {

/// Whether a policy can have a slope along its first argument. Where it has none the terms vanish from the code: a compiler must not
/// drop 0·x by itself, and kept them at a sixth of the time of Gated DeltaNet. Along the second, sees_all says it.
template <class Policy>
inline constexpr bool sees_own = true;
template <>
inline constexpr bool sees_own<evidence::nothing> = false;
template <>
inline constexpr bool sees_own<evidence::full> = false;
template <>
inline constexpr bool sees_own<gain::plain> = false;
template <>
inline constexpr bool sees_own<gain::exact> = false;

/// The write as a bare sum, in reverse. Returns du in place of dv.
template <class Rule, bool Variance, class Lanes, class T, class S, class Emit>
PALIMPSA_HD PALIMPSA_INLINE row_cotangent<T> add_adjoint(Lanes lanes, row_state<T> before, row_state<T> after, T* d_eta, T* d_J,
                                                         token<S> x, weighted_value<T> w, T beta, S prior, read_cotangent<T> y,
                                                         Emit emit) {
  T const twice_beta = beta + beta;
  return lanes.template sum<row_cotangent<T>>([=](int j, row_cotangent<T> row) PALIMPSA_INLINE_LAMBDA {
    S const a = retained<Rule>(x, j), k = x.key[j], q = x.query[j];
    if constexpr (Rule::keeps_diagonal) {
      T const r = lanes.reciprocal(prior + after.J[j]);
      T const mu = after.eta[j] * r, pulled = y.mean * q * r;
      T const g = fused(y.mean * q, r, d_eta[j]);
      T h = fused(-pulled, mu, d_J[j]), dq = y.mean * mu;
      row.prior = fused(-pulled, mu, row.prior);
      if constexpr (Variance) {
        T const scaled = q * r, spread = y.variance * scaled;
        h = fused(-spread, scaled, h);
        row.prior = fused(-spread, scaled, row.prior);
        dq = fused(spread, S(2), dq);
      }
      T const h_k = h * k;
      row.v = fused(g, k, row.v);
      row.beta = fused(h_k, k, row.beta);
      T const d_alpha = fused(g, before.eta[j], h * before.J[j]);
      if constexpr (sums_alpha<Rule>) row.alpha = row.alpha + d_alpha;
      emit(j, dq, fused(g, w.u, twice_beta * h_k), d_alpha);
      d_J[j] = a * h;
      d_eta[j] = a * g;
    } else {
      T const g = fused(y.mean, q, d_eta[j]);
      row.v = fused(g, k, row.v);
      if constexpr (sums_alpha<Rule>) row.alpha = fused(g, before.eta[j], row.alpha);
      emit(j, y.mean * after.eta[j], g * w.u, g * before.eta[j]);
      d_eta[j] = a * g;
    }
    return row;
  });
}

/// What the forward write knew of a cell, and dw.
template <class T, class R>
struct cell {
  R r;      ///< 1/R
  T m;      ///< the mean after forgetting
  T own;    ///< β k² r
  T c, s;   ///< evidence and gain
  T d;      ///< u - β c
  T w;      ///< αη + s k d
  T d_w;    ///< dw
};

/// The sums over the keys that a correction looks at, and the derivatives that come back through them.
template <class T>
struct correction_sums {
  T prediction;    ///< k·m
  T total;         ///< β kᵀR⁻¹k
  T d_prediction;  ///< with respect to k·m
  T d_total;       ///< with respect to β kᵀR⁻¹k
  T d_u;           ///< du, where it is known by then (sums_at_once)
};

/// f(j, prediction, total): the cell of key j. What a caller does not use of it costs nothing.
template <class Rule, class Lanes, class T, class S>
PALIMPSA_HD PALIMPSA_INLINE auto recall(Lanes lanes, row_state<T> before, row_state<T> after, T const* d_eta, token<S> x, T u,
                                        T beta, S prior, T y) {
  return [=](int j, T prediction, T total) PALIMPSA_INLINE_LAMBDA {
    S const a = retained<Rule>(x, j), k = x.key[j];
    auto const fill = [=](auto r) PALIMPSA_INLINE_LAMBDA {
      T const e = a * before.eta[j];
      T m = e, own = beta * (k * k);
      if constexpr (Rule::keeps_diagonal) m = e * r, own = beta * (k * k * r);
      T const c = Rule::evidence_type::seen(k * m, prediction), s = Rule::gain_type::at(lanes, own, total), d = fused(-beta, c, u);
      if constexpr (Rule::keeps_diagonal) {
        return cell<T, decltype(r)>{r, m, own, c, s, d, fused(s * k, d, e), fused(d_eta[j], own, fused(y * x.query[j], r, d_eta[j]))};
      } else {
        return cell<T, decltype(r)>{r, m, own, c, s, d, after.eta[j], fused(y, x.query[j], d_eta[j])};
      }
    };
    if constexpr (Rule::keeps_diagonal) {
      return fill(lanes.reciprocal(fused(a, before.J[j], prior)));
    } else {
      return fill(S(1));
    }
  };
}

/// α leaves the sums: m = αη with one α for all keys.
template <class Rule>
inline constexpr bool one_gate = !Rule::keeps_diagonal && Rule::forget_type::scope != gate_scope::key;

/// The slope of c = k·m needs no c: k·m, and du, whose multiple comes back through it, take one walk over the keys.
template <class Rule>
inline constexpr bool sums_at_once =
    std::is_same_v<typename Rule::evidence_type, evidence::full> && !Rule::gain_type::sees_all;

/// k·m and β kᵀR⁻¹k.
template <class Rule, class Lanes, class T, class S, class Recall>
PALIMPSA_HD PALIMPSA_INLINE two_sums<T> looked_at(Lanes lanes, token<S> x, T beta, Recall at) {
  constexpr bool both = Rule::evidence_type::sees_all && Rule::gain_type::sees_all;
  auto const k_m = [=](int j, T sum) PALIMPSA_INLINE_LAMBDA { return fused(x.key[j], at(j, T{}, T{}).m, sum); };
  auto const k_k_r = [=](int j, auto sum) PALIMPSA_INLINE_LAMBDA {
    return fused(x.key[j] * at(j, T{}, T{}).r, x.key[j], sum);
  };
  T prediction{}, total{};
  if constexpr (both && Rule::keeps_diagonal) {  // a division a cell: one walk
    auto const sums = lanes.template sum<two_sums<T>>([=](int j, two_sums<T> sum) PALIMPSA_INLINE_LAMBDA {
      return two_sums<T>{k_m(j, sum.first), k_k_r(j, sum.second)};
    });
    return {sums.first, beta * sums.second};
  }
  if constexpr (Rule::evidence_type::sees_all) prediction = lanes.template sum<T>(k_m);
  if constexpr (Rule::gain_type::sees_all) total = beta * lanes.template sum<decltype(k_k_r(0, S{}))>(k_k_r);
  return {prediction, total};
}

/// The sums of a correction and the derivatives through them, in as few walks over the keys as they take.
template <class Rule, class Lanes, class T, class S, class Recall>
PALIMPSA_HD PALIMPSA_INLINE correction_sums<T> sums_of(Lanes lanes, T const* eta, token<S> x, T beta, Recall at) {
  using evidence = typename Rule::evidence_type;
  using gain = typename Rule::gain_type;
  if constexpr (sums_at_once<Rule>) {
    auto const sums = lanes.template sum<two_sums<T>>([=](int j, two_sums<T> sum) PALIMPSA_INLINE_LAMBDA {
      auto const z = at(j, T{}, T{});
      return two_sums<T>{fused(x.key[j], one_gate<Rule> ? eta[j] : z.m, sum.first), fused(z.d_w * z.s, x.key[j], sum.second)};
    });
    T const prediction = one_gate<Rule> ? x.alpha[0] * sums.first : sums.first;
    return {prediction, T{}, -beta * sums.second, T{}, sums.second};
  } else {
    auto const known = looked_at<Rule>(lanes, x, beta, at);
    T const prediction = known.first, total = known.second;
    auto const through_prediction = [=](auto const& z, S k, T sum) PALIMPSA_INLINE_LAMBDA {
      return fused(z.d_w * z.s * k, evidence::slope(k * z.m, prediction).all, sum);
    };
    auto const through_total = [=](auto const& z, S k, T sum) PALIMPSA_INLINE_LAMBDA {
      return fused(z.d_w * k * z.d, gain::slope(lanes, z.own, total).all, sum);
    };
    T d_prediction{}, d_total{};
    if constexpr (evidence::sees_all && gain::sees_all) {
      auto const sums = lanes.template sum<two_sums<T>>([=](int j, two_sums<T> sum) PALIMPSA_INLINE_LAMBDA {
        auto const z = at(j, prediction, total);
        return two_sums<T>{through_prediction(z, x.key[j], sum.first), through_total(z, x.key[j], sum.second)};
      });
      d_prediction = sums.first;
      d_total = sums.second;
    } else if constexpr (evidence::sees_all) {
      d_prediction = lanes.template sum<T>(
          [=](int j, T sum) PALIMPSA_INLINE_LAMBDA { return through_prediction(at(j, prediction, total), x.key[j], sum); });
    } else if constexpr (gain::sees_all) {
      d_total = lanes.template sum<T>(
          [=](int j, T sum) PALIMPSA_INLINE_LAMBDA { return through_total(at(j, prediction, total), x.key[j], sum); });
    }
    return {prediction, total, -beta * d_prediction, d_total, T{}};
  }
}

/// The write as a correction of the mean, in reverse. Returns du in place of dv.
template <class Rule, bool Variance, class Lanes, class T, class S, class Emit>
PALIMPSA_HD PALIMPSA_INLINE row_cotangent<T> correct_adjoint(Lanes lanes, row_state<T> before, row_state<T> after, T* d_eta,
                                                             T* d_J, token<S> x, weighted_value<T> w, T beta, S prior,
                                                             read_cotangent<T> y, Emit emit) {
  using evidence = typename Rule::evidence_type;
  using gain = typename Rule::gain_type;
  constexpr bool own_gain = sees_own<gain>, own_evidence = sees_own<evidence>;
  constexpr bool through_own = own_gain || gain::sees_all || Rule::keeps_diagonal;
  auto const at = recall<Rule>(lanes, before, after, d_eta, x, w.u, beta, prior, y.mean);
  auto const sums = sums_of<Rule>(lanes, before.eta, x, beta, at);
  T const prediction = sums.prediction, total = sums.total, d_prediction = sums.d_prediction, d_total = sums.d_total;

  row_cotangent<T> all = lanes.template sum<row_cotangent<T>>([=](int j, row_cotangent<T> row) PALIMPSA_INLINE_LAMBDA {
    S const a = retained<Rule>(x, j), k = x.key[j], q = x.query[j];
    auto const z = at(j, prediction, total);
    T const mu = z.w * z.r, moved = z.d_w * k, d_u = moved * z.s;
    T seen = d_prediction, down = d_total, square{};  // square: with respect to k², over β
    if constexpr (own_evidence) seen = fused(-beta * d_u, evidence::slope(k * z.m, prediction).own, seen);
    if constexpr (own_gain) down = fused(moved * z.d, gain::slope(lanes, z.own, total).own, down);
    if constexpr (Rule::keeps_diagonal) down = fused(d_eta[j], z.w, down);
    if constexpr (through_own) square = down * z.r;
    T const e = fused(k * z.r, seen, z.d_w);  // with respect to αη
    T dq = y.mean * mu, dk{};
    if constexpr (one_gate<Rule> && !own_evidence)
      dk = fused(z.d_w * z.s, z.d, before.eta[j] * (a * seen));
    else
      dk = fused(z.d_w * z.s, z.d, z.m * seen);
    T d_alpha = e * before.eta[j];
    if constexpr (Rule::keeps_diagonal) {
      T const through_R = fused(y.mean * q, mu, fused(z.own, down, z.m * (k * seen)));
      T h = d_J[j];
      row.prior = fused(-z.r, through_R, row.prior);
      if constexpr (Variance) {
        T const scaled = q * lanes.reciprocal(prior + after.J[j]), spread = y.variance * scaled;
        h = fused(-spread, scaled, h);
        row.prior = fused(-spread, scaled, row.prior);
        dq = fused(spread, S(2), dq);
      }
      square = fused(z.r, down, h);
      T const d_remembered = fused(-z.r, through_R, h);
      d_alpha = fused(d_remembered, before.J[j], e * before.eta[j]);
      d_J[j] = a * d_remembered;
    }
    if constexpr (!sums_at_once<Rule>) row.v = fused(moved, z.s, row.v);
    if constexpr (own_evidence) row.beta = fused(d_u, w.slope - z.c, row.beta);
    if constexpr (through_own) {
      row.beta = fused(square * k, k, row.beta);
      dk = fused(beta * square, 2 * k, dk);
    }
    if constexpr (sums_alpha<Rule> && Rule::keeps_diagonal) row.alpha = row.alpha + d_alpha;
    if constexpr (sums_alpha<Rule> && !Rule::keeps_diagonal) row.alpha = fused(e, before.eta[j], row.alpha);
    emit(j, dq, dk, d_alpha);
    d_eta[j] = a * e;
    return row;
  });
  if constexpr (sums_at_once<Rule>) all.v = sums.d_u;
  if constexpr (!own_evidence) all.beta = fused(all.v, w.slope - evidence::seen(T{}, prediction), all.beta);  // c: one for all keys
  return all;
}

}  // namespace detail

/// Takes one token back from one value row (or a pack of rows), any rule: the reverse of observe().
///
/// @param lanes  who walks the keys
/// @param before the state before the token, this lane's cells
/// @param after  the state after it
/// @param d_eta  K cells: in ∂loss/∂η after the token (without its read), out ∂loss/∂η before it
/// @param d_J    the same for J; not touched unless Rule::keeps_diagonal
/// @param x      key, query (for a full memory Λ⁻¹q) and retained share, as observe() had them
/// @param v,beta,prior  as observe() had them
/// @param y      what the loss asks of the read; y.variance is not read unless Variance
/// @param emit   emit(j, dq, dk, dα) is called once for every key of this lane, in order, with what belongs to the key of this row: a
///               head sums it over its rows. dq is dx where x = Λ⁻¹q; dα is meant for gates per key, the row's sum for others.
///               (Three packs, not one aggregate: GCC 12 sends an aggregate of packs through memory.)
/// @return       what belongs to the row. alpha is ∂loss/∂α: the caller multiplies by forget::slope
template <class Rule, bool Variance = false, class Lanes, class T, class Token, class S, class Emit>
PALIMPSA_HD PALIMPSA_INLINE row_cotangent<T> observe_adjoint(Lanes lanes, row_state<T> before, row_state<T> after, T* d_eta,
                                                             T* d_J, Token x, T v, T beta, S prior, read_cotangent<T> y,
                                                             Emit emit) {
  static_assert(!Variance || Rule::keeps_diagonal,
                "palimpsa::observe_adjoint: only a diagonal memory has a variance per row");
  using weighting = typename Rule::weighting_type;
  auto const w = detail::weigh<weighting>(beta, v);
  row_cotangent<T> row;
  if constexpr (Rule::adds) {
    row = detail::add_adjoint<Rule, Variance>(lanes, before, after, d_eta, d_J, static_cast<token<S>>(x), w, beta, prior, y, emit);
    row.beta = fused(row.v, w.slope, row.beta);
  } else if constexpr (detail::exact_write<Rule>) {
    row = detail::exact_adjoint<Rule, Variance>(lanes, before, after, d_eta, d_J, x, w, beta, prior, y, emit);
  } else {
    row = detail::correct_adjoint<Rule, Variance>(lanes, before, after, d_eta, d_J, static_cast<token<S>>(x), w, beta, prior, y, emit);
  }
  row.v = row.v * weighting::slope_v(beta, v);
  return row;
}

}  // namespace palimpsa
