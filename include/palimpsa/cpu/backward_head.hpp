#pragma once
/// @file
/// One value head of one sequence, as the backward pass sees it.

#include <cstdint>
#include <type_traits>

#include "palimpsa/cpu/head.hpp"
#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// What the backward pass calculates in. A diagonal memory under a correction sums terms of both signs for dprior and the gates, more
/// of them than Palimpsa: in float a few problems of the tests miss their bound by 4 to 28%. A full memory multiplies the rounding of J
/// by the condition of Λ, and solves in double anyway. Others: the type of the tensors.
template <class Rule, class Scalar>
using backward_scalar = std::conditional_t<Rule::keeps_full || (Rule::keeps_diagonal && !Rule::adds), double, Scalar>;

/// The sizes that fix the scratch of one thread.
struct backward_sizes {
  std::int64_t keys;    ///< K
  std::int64_t values;  ///< V
  std::int64_t group;   ///< value heads a key head
  std::int64_t chunks;  ///< of the longest sequence
  std::int64_t chunk;   ///< tokens a chunk, no more than the longest sequence has
};

/// What one value head of one sequence is asked for, and where its gradients go; absent planes are zero, or not written.
template <class Storage, class Scalar>
struct head_backward {
  head_inputs<Storage, Scalar> in;                ///< what the head read
  plane<Storage const> out;                       ///< ∂loss/∂out [T,V]
  plane<Scalar const> out_variance;               ///< ∂loss/∂out_variance [T,V]
  plane<Scalar const> final_eta;                  ///< ∂loss/∂ the η left
  plane<Scalar const> final_evidence;             ///< ∂loss/∂ the J left
  plane<Storage> v;                               ///< gradient [T,V]
  plane<Scalar> beta;                             ///< gradient [T, 1 or V]
  plane<Scalar> log_decay;                        ///< gradient [T, 1 or K]
  bool beta_per_channel = false;                  ///< beta has one number a value row
  plane<Scalar> initial_eta;                      ///< gradient
  plane<Scalar> initial_evidence;                 ///< gradient
  double* prior = nullptr;                        ///< this head's sum of dprior: 1, or K for a full memory
  double* constant_gate = nullptr;                ///< this head's sum of dlog_decay where the gate is constant
};

}  // namespace palimpsa::cpu
