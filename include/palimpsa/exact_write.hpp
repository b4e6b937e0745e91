#pragma once
/// @file
/// The write with the exact gain, without a difference of nearly equal numbers: see exact().

#include <limits>
#include <type_traits>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/elementwise.hpp"
#include "palimpsa/fused.hpp"
#include "palimpsa/policies/evidence.hpp"
#include "palimpsa/policies/gain.hpp"
#include "palimpsa/row_cell.hpp"

namespace palimpsa::inline PALIMPSA_ABI::detail {

/// More than any sum.
template <class S>
inline constexpr S beyond_all = (std::numeric_limits<S>::max)();

/// Σ_j x_j with its greatest term set apart, all terms ≥ 0: what is left without a term can then be said without a difference of nearly
/// equal numbers.
template <class R>
struct apart {
  R most;  ///< the greatest
  R rest;  ///< the sum of the others
  /// With one more term.
  PALIMPSA_HD PALIMPSA_INLINE apart with(R x) const { return {maximum(most, x), rest + minimum(most, x)}; }
  /// The sum without the term a·b, one of its own.
  template <class B>
  PALIMPSA_HD PALIMPSA_INLINE R without(R a, B b) const {
    return select(a * b < most, rest + fused(-a, b, most), rest);
  }
  /// Over disjoint keys.
  PALIMPSA_HD PALIMPSA_INLINE friend apart operator+(apart a, apart b) {
    return {maximum(a.most, b.most), (a.rest + b.rest) + minimum(a.most, b.most)};
  }
};

/// The same of k_j²/R_j, and k_j m_j that goes with the greatest beside the sum of the others.
template <class R, class T>
struct apart_shares {
  apart<R> square;  ///< k_j²/R_j
  T lead;           ///< k_j m_j where k_j²/R_j is greatest
  T others;         ///< Σ k_j m_j elsewhere
  /// With one more cell, of k_j²/R_j = x.
  template <class S>
  PALIMPSA_HD PALIMPSA_INLINE apart_shares with(R x, S k, T m) const {
    auto const leads = square.most < x;
    return {square.with(x), select(leads, k * m, lead), select(leads, others + lead, fused(k, m, others))};
  }
  /// Over disjoint keys.
  PALIMPSA_HD PALIMPSA_INLINE friend apart_shares operator+(apart_shares a, apart_shares b) {
    auto const leads = a.square.most < b.square.most;
    return {a.square + b.square, select(leads, b.lead, a.lead), (a.others + b.others) + select(leads, a.lead, b.lead)};
  }
};

/// Whether the write has the closed form of exact() below: the exact gain, under evidence whose other keys are known.
template <class Rule>
inline constexpr bool exact_write =
    !Rule::adds && std::is_same_v<typename Rule::gain_type, gain::exact> &&
    (std::is_same_v<typename Rule::evidence_type, evidence::diagonal> || std::is_same_v<typename Rule::evidence_type, evidence::full>);

/// A diagonal memory after look() has left m_j in place of η_j and αJ_j in place of J_j, and 1/R_j with the lanes where they have room.
template <class Rule, class Lanes, class T, class S>
struct settled {
  Lanes lanes;
  T const *eta, *J;
  token<S> x;
  S prior;

  /// k_j/R_j.
  PALIMPSA_HD PALIMPSA_INLINE T pull(int j) const {
    if constexpr (spares<Lanes>) {
      return x.key[j] * lanes.spare[j];
    } else {
      return x.key[j] * lanes.reciprocal(prior + J[j]);
    }
  }
  /// m_j.
  PALIMPSA_HD PALIMPSA_INLINE T mean(int j) const { return eta[j]; }
  /// αJ_j.
  PALIMPSA_HD PALIMPSA_INLINE T evidence(int j) const { return J[j]; }
};

/// The sums over the keys that an exact write looks at.
template <class R, class T>
struct exact_sums {
  apart<R> square;  ///< k_j²/R_j
  T lead;           ///< k_j m_j of the key that carries most of it; under diagonal evidence not summed
  T others;         ///< Σ k_j m_j elsewhere
  R leads_from;     ///< k_j²/R_j of a key that carries more than half, which no other key reaches; else beyond all
};

/// Whether a token brings its squares.
template <class Token>
inline constexpr bool brings_squares = requires(Token x) { x.others; };

/// Σ_{i≠j} k_i²/R_i, given k_j/R_j.
template <class Token, class R>
PALIMPSA_HD PALIMPSA_INLINE R elsewhere(Token x, apart<R> square, R pull, int j) {
  if constexpr (brings_squares<Token>) {
    return x.others[j];
  } else {
    return square.without(pull, x.key[j]);
  }
}

/// Σ k²/R and k·m before the write. settle(j, m_j, 1/R_j) is told what was worked out for a cell of a diagonal memory.
template <class Rule, class Before, class Token, class Settle>
PALIMPSA_HD PALIMPSA_INLINE auto look(Before before, [[maybe_unused]] Token x, Settle settle) {
  using T = std::remove_cv_t<std::remove_pointer_t<decltype(before.eta)>>;
  using R = decltype(before.covariance(0));
  auto const key = before.x.key;
  scalar_of<R> const beyond = beyond_all<scalar_of<R>>;
  exact_sums<R, T> sums{};
  constexpr bool known = brings_squares<Token>;
  if constexpr (known) sums.square = {x.most, x.rest};
  if constexpr (!Rule::evidence_type::sees_all) {
    if constexpr (!known) sums.square = before.lanes.template sum<apart<R>>([=](int j, apart<R> sum) PALIMPSA_INLINE_LAMBDA {
      R const r = before.covariance(j), pull = key[j] * r;
      if constexpr (Rule::keeps_diagonal) settle(j, before.mean(j, r), r);
      return sum.with(pull * key[j]);
    });
  } else if constexpr (Rule::keeps_diagonal) {
    auto const found = before.lanes.template sum<apart_shares<R, T>>(
        [=](int j, apart_shares<R, T> sum) PALIMPSA_INLINE_LAMBDA {
          R const r = before.covariance(j), pull = key[j] * r;
          T const m = before.mean(j, r);
          settle(j, m, r);
          return sum.with(pull * key[j], key[j], m);
        });
    sums = {found.square, found.lead, found.others, R{}};
  } else {  // one number for all rows: which key leads is known before the shares are summed
    if constexpr (!known)
      sums.square = before.lanes.template sum<apart<R>>(
          [=](int j, apart<R> sum) PALIMPSA_INLINE_LAMBDA { return sum.with(key[j] * key[j]); });
    R const from = select(sums.square.rest < sums.square.most, sums.square.most, beyond);
    auto const shares = before.lanes.template sum<two_sums<T>>([=](int j, two_sums<T> sum) PALIMPSA_INLINE_LAMBDA {
      R const k = key[j];
      bool const leads = from <= k * k;
      T const m = before.mean(j, R(1));
      return two_sums<T>{fused(leads ? k : R{}, m, sum.first), fused(leads ? R{} : k, m, sum.second)};
    });
    sums.lead = shares.first;
    sums.others = shares.second;
  }
  sums.leads_from = select(sums.square.rest < sums.square.most, sums.square.most, beyond);
  return sums;
}

/// s = 1/(1 + β Σ_i k_i²/R_i), and no number where the sum leaves the range of the type: 0 would be taken for an answer.
template <class Lanes, class T, class R>
PALIMPSA_HD PALIMPSA_INLINE T exact_gain(Lanes lanes, T beta, R square) {
  T const total = beta * square;
  return fused(total, 0, lanes.reciprocal(1 + total));
}

/// exact() for c = k·m, where the head knows which key leads: the loops run without it, and its cell is written after them.
template <class Rule, class Lanes, class T, class S>
PALIMPSA_HD PALIMPSA_INLINE answer<T, false> exact_but_lead(Lanes lanes, T* eta, known_token<S> x, T u, T beta) {
  token<S> const others{x.rest_key, x.rest_query, x.alpha};
  remembered<Rule, Lanes, T, S> const before{lanes, eta, nullptr, others, S{}};
  bool const leads = x.lead >= 0;
  S const k = leads ? x.key[x.lead] : S{};
  T const m = leads ? before.mean(x.lead) : T{};
  T const prediction = lanes.template sum<T>(
      [=](int j, T sum) PALIMPSA_INLINE_LAMBDA { return fused(x.rest_key[j], before.mean(j), sum); });
  T const s = exact_gain(lanes, beta, x.most + x.rest), moved = s * fused(-beta, fused(k, m, prediction), u);
  auto read = lanes.template sum<answer<T, false>>([=](int j, answer<T, false> sums) PALIMPSA_INLINE_LAMBDA {
    return leave<Rule, false>(before, j, fused(moved, x.rest_key[j], before.mean(j)), beta, eta, eta, sums);
  });
  if (leads) {
    T const mu = eta[x.lead] = fused(s * fused(-beta, prediction, u), k, fused(s * beta, x.rest, s) * m);
    read.mean = fused(mu, x.query[x.lead], read.mean);
  }
  return read;
}

/// The write with the exact gain, s = 1/(1 + β Σ_i k_i²/R_i). As a correction, μ = m + s (k/R)(u - β c), it is a difference of nearly
/// equal numbers where one key carries all (β k²/R ≫ 1), so what a mean keeps is written out, with sums over the other keys:
///
///     c = k_j m_j   μ_j = s ( (1 + β Σ_{i≠j} k_i²/R_i) m_j + (k_j/R_j) u )
///     c = k·m       μ_j = s ( (1 + β Σ_{i≠j} k_i²/R_i) m_j + (k_j/R_j)(u - β Σ_{i≠j} k_i m_i) )      for the key that leads;
///                   for another own_j is at most half of the sum, and the correction loses nothing
template <class Rule, bool Variance, class Lanes, class T, class Token, class S>
PALIMPSA_HD PALIMPSA_INLINE answer<T, Variance> exact(Lanes lanes, T* eta, T* J, Token x, T u, T beta, S prior) {
  remembered<Rule, Lanes, T, S> const forgotten{lanes, eta, J, x, prior};
  auto const sums = look<Rule>(forgotten, x, [=]([[maybe_unused]] int j, [[maybe_unused]] T m, [[maybe_unused]] auto r) PALIMPSA_INLINE_LAMBDA {
    if constexpr (Rule::keeps_diagonal) {
      eta[j] = m;
      J[j] = forgotten.evidence(j);
      if constexpr (spares<Lanes>) lanes.spare[j] = r;
    }
  });
  std::conditional_t<Rule::keeps_diagonal, settled<Rule, Lanes, T, S>, remembered<Rule, Lanes, T, S>> const before{lanes, eta, J, x, prior};
  T const s = exact_gain(lanes, beta, sums.square.most + sums.square.rest);
  T const s_beta = s * beta;
  if constexpr (!Rule::evidence_type::sees_all) {
    T const s_u = s * u;
    return lanes.template sum<answer<T, Variance>>([=](int j, answer<T, Variance> read) PALIMPSA_INLINE_LAMBDA {
      auto const pull = before.pull(j);
      T const kept = fused(s_beta, elsewhere(x, sums.square, pull, j), s);
      return leave<Rule, Variance>(before, j, fused(s_u, pull, kept * before.mean(j)), beta, eta, J, read);
    });
  } else {
    T const kept = fused(s_beta, sums.square.rest, s);
    T const moved = s * fused(-beta, sums.lead + sums.others, u), lead_moved = s * fused(-beta, sums.others, u);
    return lanes.template sum<answer<T, Variance>>([=](int j, answer<T, Variance> read) PALIMPSA_INLINE_LAMBDA {
      auto const pull = before.pull(j);
      auto const leads = sums.leads_from <= pull * x.key[j];
      T const m = before.mean(j);
      T const mu = fused(select(leads, lead_moved, moved), pull, select(leads, kept * m, m));
      return leave<Rule, Variance>(before, j, mu, beta, eta, J, read);
    });
  }
}

}  // namespace palimpsa::detail
