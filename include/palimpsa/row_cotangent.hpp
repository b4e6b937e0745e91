#pragma once
/// @file
/// What a row is asked for in reverse and what it gives back; the equations are in adjoint.hpp.

#include "palimpsa/detail/config.hpp"
#include "palimpsa/fused.hpp"
#include "palimpsa/policies/forget.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// What the loss asks of the read of a row: its derivatives with respect to Σ_j μ_j q_j and Σ_j q_j²/(prior + J_j).
template <class T>
struct read_cotangent {
  T mean;      ///< y = scale · ∂loss/∂out
  T variance;  ///< z = scale² · ∂loss/∂out_variance; not read unless asked for
};

/// The state of a row at one time: K cells of η, and of the diagonal evidence where it is kept.
template <class T>
struct row_state {
  T const* eta;  ///< η
  T const* J;    ///< J; not read unless Rule::keeps_diagonal
};

/// Derivatives of the loss that belong to a whole row.
template <class T>
struct row_cotangent {
  T v;      ///< dv
  T beta;   ///< dβ
  T alpha;  ///< dα of the head's gate, this row's share; zero where gates are per key
  T prior;  ///< dprior, this row's share; zero unless Rule::keeps_diagonal
  /// Over disjoint keys.
  PALIMPSA_HD PALIMPSA_INLINE friend row_cotangent operator+(row_cotangent a, row_cotangent b) {
    return {a.v + b.v, a.beta + b.beta, a.alpha + b.alpha, a.prior + b.prior};
  }
};

namespace detail {

/// What the token's value and β make of the write, and how: u, ∂u/∂β and β ∂u/∂β - u.
template <class T>
struct weighted_value {
  T u;       ///< what is written
  T slope;   ///< ∂u/∂β
  T excess;  ///< β ∂u/∂β - u, exactly 0 where u is proportional to β
};

/// The weighted value of a row.
template <class Weighting, class T>
PALIMPSA_HD PALIMPSA_INLINE weighted_value<T> weigh(T beta, T v) {
  T const u = Weighting::write(beta, v), slope = Weighting::slope_beta(beta, v);
  if constexpr (requires { Weighting::excess(beta, v); }) {
    return {u, slope, Weighting::excess(beta, v)};
  } else {
    return {u, slope, fused(beta, slope, -u)};
  }
}

/// Whether dα is wanted as a sum over the keys.
template <class Rule>
inline constexpr bool sums_alpha = Rule::forget_type::scope != gate_scope::key;

}  // namespace detail
}  // namespace palimpsa
