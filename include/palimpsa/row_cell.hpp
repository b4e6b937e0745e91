#pragma once
/// @file
/// One cell of a row, for all that walk over the keys: what a token offers, what a row answers, what a cell remembers and how it is left
/// and read. The equations are in recurrence.hpp.

#include "palimpsa/detail/config.hpp"
#include "palimpsa/fused.hpp"
#include "palimpsa/policies/forget.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// What one token offers to all rows of a head. Arrays over the keys of this lane.
template <class S>
struct token {
  S const* key;    ///< k
  S const* query;  ///< q; for a full memory x = Λ⁻¹q
  S const* alpha;  ///< retained share: one value, or one per key (gate_scope::key)
};

/// A token whose squares are known, for an exact gain over a memory of nothing: what all rows of a head would work out alike.
template <class S>
struct known_token : token<S> {
  S most;                ///< the greatest k_i²
  S rest;                ///< the sum of the others
  S const* others;       ///< Σ_{i≠j} k_i² for every key
  int lead;              ///< the key that carries more than half of the sum; -1: none does
  S const* rest_key;     ///< k without that key
  S const* rest_query;   ///< q without it
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

/// Two sums that are taken in one walk over the keys.
template <class T>
struct two_sums {
  T first;   ///< one
  T second;  ///< the other
  /// Over disjoint keys.
  PALIMPSA_HD PALIMPSA_INLINE friend two_sums operator+(two_sums a, two_sums b) {
    return {a.first + b.first, a.second + b.second};
  }
};

/// α for key j: the head's, or the key's own.
template <class Rule, class S>
PALIMPSA_HD PALIMPSA_INLINE S retained(token<S> x, int j) {
  if constexpr (Rule::forget_type::scope == gate_scope::key) {
    return x.alpha[j];
  } else {
    return x.alpha[0];
  }
}

/// The sums with one cell's μ_j q_j and q_j² r_j added.
template <bool Variance, class T, class S>
PALIMPSA_HD PALIMPSA_INLINE answer<T, Variance> read(T mu, T r, S q, answer<T, Variance> sums) {
  sums.mean = fused(mu, q, sums.mean);
  if constexpr (Variance) sums.variance = fused(r * q, q, sums.variance);  // q² alone may leave the range that r q² is in
  return sums;
}

/// Whether lanes have room for a value a key.
template <class Lanes>
inline constexpr bool spares = requires(Lanes lanes) { lanes.spare; };

/// Before the write: 1/R_j, m_j and αJ_j of a cell.
template <class Rule, class Lanes, class T, class S>
struct remembered {
  Lanes lanes;
  T const *eta, *J;
  token<S> x;
  S prior;

  /// 1/R_j: one number for all rows where nothing is remembered.
  PALIMPSA_HD PALIMPSA_INLINE auto covariance(int j) const {
    if constexpr (Rule::keeps_diagonal) {
      return lanes.reciprocal(fused(retained<Rule>(x, j), J[j], prior));
    } else {
      return S(1);
    }
  }
  /// m_j, given 1/R_j.
  template <class R>
  PALIMPSA_HD PALIMPSA_INLINE T mean(int j, [[maybe_unused]] R r) const {
    if constexpr (Rule::keeps_diagonal) {
      return retained<Rule>(x, j) * eta[j] * r;
    } else {
      return retained<Rule>(x, j) * eta[j];
    }
  }
  /// m_j.
  PALIMPSA_HD PALIMPSA_INLINE T mean(int j) const { return mean(j, covariance(j)); }
  /// k_j/R_j.
  PALIMPSA_HD PALIMPSA_INLINE auto pull(int j) const {
    if constexpr (Rule::keeps_diagonal) {
      return x.key[j] * covariance(j);
    } else {
      return x.key[j];
    }
  }
  /// αJ_j.
  PALIMPSA_HD PALIMPSA_INLINE T evidence(int j) const { return retained<Rule>(x, j) * J[j]; }
};

/// Leaves μ_j, and J_j where it is kept, in cell j, and adds the cell to the read. (The query is read after the state is written: read
/// before, g++ 12 loads it as a number and spreads it from a register, two instructions more a key.)
template <class Rule, bool Variance, class Before, class T>
PALIMPSA_HD PALIMPSA_INLINE answer<T, Variance> leave(Before before, int j, T mu, T beta, T* eta, T* J, answer<T, Variance> sums) {
  if constexpr (Rule::keeps_diagonal) {
    auto const k = before.x.key[j];
    J[j] = fused(beta, k * k, before.evidence(j));
    T const precision = before.prior + J[j];
    eta[j] = mu * precision;
    if constexpr (Variance)
      return read<true>(mu, before.lanes.reciprocal(precision), before.x.query[j], sums);
    else
      return read<false>(mu, mu, before.x.query[j], sums);
  } else {
    eta[j] = mu;
    return read<false>(mu, mu, before.x.query[j], sums);
  }
}

}  // namespace detail
}  // namespace palimpsa
