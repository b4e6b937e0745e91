#pragma once
/// @file
/// Axis 4, forget: the share α of what was accumulated on top of the prior that survives a token.
///
/// A policy is a type with
///   scope                       which log_decay it reads (see gate_scope)
///   retain(log_decay)           α in [0, 1] for log_decay in [-inf, 0]
///   slope(log_decay, alpha)     ∂α/∂log_decay, used by the backward pass only; finite (zero) at log_decay = -inf
/// and it may have
///   change(log_decay)           α - 1 without a difference: chunks in double keep slow gates by it
/// Gates are evaluated once per token and head (and key), outside the rows.

#include <cmath>

#include "palimpsa/detail/config.hpp"

namespace palimpsa {

/// How many gates a token has, hence the shape of log_decay.
enum class gate_scope {
  none,      ///< no gate: log_decay must be absent
  constant,  ///< one per head for ever: log_decay [HV]
  head,      ///< one per token and head: log_decay [B,T,HV]
  key        ///< one per token, head and key channel: log_decay [B,T,HV,K]
};

namespace forget {

/// α = exp(log_decay), the gate of every rule in the family; log_decay is a natural logarithm, ≤ 0, -inf allowed.
struct exponential {
  /// α = exp(log_decay).
  template <class S>
  PALIMPSA_HD static S retain(S log_decay) {
    using std::exp;
    return exp(log_decay);
  }
  /// α - 1.
  template <class S>
  PALIMPSA_HD static S change(S log_decay) {
    using std::expm1;
    return expm1(log_decay);
  }
  /// dα/dlog_decay = α.
  template <class S>
  PALIMPSA_HD static S slope(S, S alpha) {
    return alpha;
  }
};

/// α = 1: nothing is forgotten (linear attention, DeltaNet).
struct none : exponential {
  /// No log_decay.
  static constexpr gate_scope scope = gate_scope::none;
};
/// One gate per head for ever, log_decay [HV] (RetNet).
struct constant : exponential {
  /// log_decay [HV].
  static constexpr gate_scope scope = gate_scope::constant;
};
/// One gate per token and head, log_decay [B,T,HV] (Mamba2, Gated DeltaNet, Palimpsa).
struct per_head : exponential {
  /// log_decay [B,T,HV].
  static constexpr gate_scope scope = gate_scope::head;
};
/// One gate per token, head and key channel, log_decay [B,T,HV,K] (GLA, KDA).
struct per_key : exponential {
  /// log_decay [B,T,HV,K].
  static constexpr gate_scope scope = gate_scope::key;
};

}  // namespace forget
}  // namespace palimpsa
