#pragma once
/// @file
/// The write with the exact gain, in reverse; the equations are in adjoint.hpp.

#include "palimpsa/detail/config.hpp"
#include "palimpsa/elementwise.hpp"
#include "palimpsa/exact_write.hpp"
#include "palimpsa/fused.hpp"
#include "palimpsa/row_cell.hpp"
#include "palimpsa/row_cotangent.hpp"

namespace palimpsa::inline PALIMPSA_ABI::detail {

/// Derivatives that come back through the sums of an exact write, its leading key's share apart.
template <class T>
struct exact_pull {
  T lead;           ///< h k r of the key that leads
  T others;         ///< Σ h k r elsewhere
  T missed_lead;    ///< h k r (∂u/∂β - c); under full evidence not summed, since c is the same for all keys
  T missed_others;  ///< Σ of it elsewhere
  /// Over disjoint keys.
  PALIMPSA_HD PALIMPSA_INLINE friend exact_pull operator+(exact_pull a, exact_pull b) {
    return {a.lead + b.lead, a.others + b.others, a.missed_lead + b.missed_lead, a.missed_others + b.missed_others};
  }
};

/// The write with the exact gain, in reverse. Returns du in place of dv, and dβ whole.
template <class Rule, bool Variance, class Lanes, class T, class Token, class S, class Emit>
PALIMPSA_HD PALIMPSA_INLINE row_cotangent<T> exact_adjoint(Lanes lanes, row_state<T> before, row_state<T> after, T* d_eta,
                                                           T* d_J, Token x, weighted_value<T> w, T beta, S prior,
                                                           read_cotangent<T> y, Emit emit) {
  constexpr bool whole = Rule::evidence_type::sees_all;  // c = k·m
  remembered<Rule, Lanes, T, S> const met{lanes, before.eta, before.J, x, prior};
  using R = decltype(met.covariance(0));
  auto const sums = look<Rule>(met, x, [=]([[maybe_unused]] int j, T, [[maybe_unused]] R r) PALIMPSA_INLINE_LAMBDA {
    if constexpr (Rule::keeps_diagonal && spares<Lanes>) lanes.spare[j] = r;
  });
  auto const covariance = [=](int j) PALIMPSA_INLINE_LAMBDA {
    if constexpr (Rule::keeps_diagonal && spares<Lanes>) {
      return lanes.spare[j];
    } else {
      return met.covariance(j);
    }
  };
  R const square = sums.square.most + sums.square.rest;
  R const from = sums.leads_from;
  T const s = exact_gain(lanes, beta, square);
  T const prediction = sums.lead + sums.others;
  auto const d_mean = [=](int j) PALIMPSA_INLINE_LAMBDA {  // h
    T const by_read = y.mean * x.query[j];
    if constexpr (Rule::keeps_diagonal) {
      return fused(prior + after.J[j], d_eta[j], by_read);
    } else {
      return fused(y.mean, x.query[j], d_eta[j]);
    }
  };
  auto const pull = lanes.template sum<exact_pull<T>>([=](int j, exact_pull<T> sum) PALIMPSA_INLINE_LAMBDA {
    S const k = x.key[j];
    R const r = covariance(j), k_r = k * r, x_j = k_r * k;
    T const h = d_mean(j);
    auto const leads = from <= x_j;
    sum.lead = fused(h, select(leads, k_r, R{}), sum.lead);
    sum.others = fused(h, select(leads, R{}, k_r), sum.others);
    if constexpr (!whole) {
      T const missed = h * fused(-k, met.mean(j, r), w.slope);
      sum.missed_lead = fused(missed, select(leads, k_r, R{}), sum.missed_lead);
      sum.missed_others = fused(missed, select(leads, R{}, k_r), sum.missed_others);
    }
    return sum;
  });
  T const drawn = pull.lead + pull.others, s_beta = s * beta, kept_lead = fused(s_beta, sums.square.rest, s);
  // c = k·m
  T const moved = s * fused(-beta, prediction, w.u), lead_moved = s * fused(-beta, sums.others, w.u);
  T const back = s_beta * drawn, lead_back = s_beta * pull.others;
  // c = k m: D and D_, with d = β (∂u/∂β - c) - excess
  T const turned = fused(beta, pull.missed_lead + pull.missed_others, -w.excess * drawn);
  T const s_u = s * w.u, twice_s = s + s;
  T const lead_turned = fused(beta, pull.missed_others, -w.excess * pull.others);

  row_cotangent<T> all = lanes.template sum<row_cotangent<T>>([=](int j, row_cotangent<T> row) PALIMPSA_INLINE_LAMBDA {
    S const a = retained<Rule>(x, j), k = x.key[j], q = x.query[j];
    R const r = covariance(j), k_r = k * r, x_j = k_r * k;
    T const m = met.mean(j, r), h = d_mean(j);
    auto const leads = from <= x_j;
    T mu, d_m, dk, turned_elsewhere{};
    if constexpr (whole) {
      mu = fused(select(leads, lead_moved, moved), k_r, select(leads, kept_lead * m, m));
      d_m = fused(-k, select(leads, lead_back, back), select(leads, kept_lead * h, h));
      dk = fused(moved * r, d_m, -back * mu);
    } else {
      T const kept = fused(s_beta, elsewhere(x, sums.square, k_r, j), s), d = fused(-beta * k, m, w.u);
      mu = fused(s_u, k_r, kept * m);
      d_m = kept * h;
      turned_elsewhere = select(leads, lead_turned, fused(-(h * k_r), d, turned));
      dk = s * r * fused(d_m, d, -(beta * k) * fused(h, mu, twice_s * turned_elsewhere));
    }
    T dq = y.mean * mu;
    T const d_forgotten = Rule::keeps_diagonal ? d_m * r : d_m;  // with respect to αη
    T d_alpha = d_forgotten * before.eta[j];
    if constexpr (Rule::keeps_diagonal) {
      T const own = beta * x_j, others = beta * elsewhere(x, sums.square, k_r, j), by_read = y.mean * q * r;
      T through{};  // -ρ
      if constexpr (whole) {
        T const alone = fused(own, d_eta[j], by_read);
        through = fused(-(beta * k_r) * s, select(leads, pull.others, drawn),
                        select(leads, s * fused(own * others, d_eta[j], fused(others, by_read, by_read)), alone));
      } else {
        T const kept = fused(s_beta, elsewhere(x, sums.square, k_r, j), s);
        through = fused(s * own * others, d_eta[j], kept * by_read);
      }
      T at_mean = fused(mu, d_eta[j], d_J[j]);  // G
      T h_J = d_J[j];
      if constexpr (Variance) {
        T const scaled = q * lanes.reciprocal(prior + after.J[j]), spread = y.variance * scaled;
        h_J = fused(-spread, scaled, h_J);
        at_mean = fused(-spread, scaled, at_mean);
        row.prior = fused(-spread, scaled, row.prior);
        dq = fused(spread, S(2), dq);
      }
      if constexpr (whole) {
        row.prior = fused(-mu, through, row.prior);
        h_J = fused(-mu, through, h_J);
      } else {
        row.prior = fused(-mu, through, fused(s * s * own * r, turned_elsewhere, row.prior));
        h_J = fused(-mu, through, fused(s * s * own * r, turned_elsewhere, h_J));
      }
      dk = fused(2 * beta * k, at_mean, dk);
      row.beta = fused(at_mean * k, k, row.beta);
      d_alpha = fused(h_J, before.J[j], d_alpha);
      d_J[j] = a * h_J;
      if constexpr (sums_alpha<Rule>) row.alpha = row.alpha + d_alpha;
    } else if constexpr (sums_alpha<Rule>) {
      row.alpha = fused(d_forgotten, before.eta[j], row.alpha);
    }
    emit(j, dq, dk, d_alpha);
    d_eta[j] = a * d_forgotten;
    return row;
  });
  all.v = s * drawn;
  T const missed = whole ? drawn * (w.slope - prediction) : pull.missed_lead + pull.missed_others;
  all.beta = fused(s, fused(s * square, drawn * w.excess, s * missed), all.beta);
  return all;
}

}  // namespace palimpsa::detail
