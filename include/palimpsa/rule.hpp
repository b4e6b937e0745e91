#pragma once
/// @file
/// A rule is a point on five axes. This file names the point, refuses senseless ones in a sentence, and derives what follows from it.

#include <type_traits>

#include "palimpsa/concepts.hpp"
#include "palimpsa/policies/evidence.hpp"
#include "palimpsa/policies/forget.hpp"
#include "palimpsa/policies/gain.hpp"
#include "palimpsa/policies/memory.hpp"
#include "palimpsa/policies/weighting.hpp"

namespace palimpsa {

/// A member of the family: what it remembers of the precision, what its correction sees, how far it moves, how it forgets, and
/// whether values arrive weighted. Any sensible combination runs on every path that needs no hand-made algorithm.
template <class Memory, class Evidence, class Gain, class Forget = forget::per_head, class Weighting = weighting::likelihood>
struct rule {
  static_assert(memory_policy<Memory>, "palimpsa::rule: the first axis must be memory::nothing, memory::diagonal or memory::full");
  static_assert(evidence_policy<Evidence>,
                "palimpsa::rule: an evidence policy needs sees_all, seen(own, all) and slope(own, all); see policies/evidence.hpp");
  static_assert(gain_policy<Gain>,
                "palimpsa::rule: a gain policy needs sees_all, at(lanes, own, all) and slope(lanes, own, all); see policies/gain.hpp");
  static_assert(!evidence_policy<Evidence> || declares_sees_all<Evidence>,
                "palimpsa::rule: sees_all of an evidence policy must be a static constexpr bool: whether seen reads the sum over the keys");
  static_assert(!gain_policy<Gain> || declares_sees_all<Gain>,
                "palimpsa::rule: sees_all of a gain policy must be a static constexpr bool: whether at reads the sum over the keys");
  static_assert(detail::honest_evidence<Evidence>,
                "palimpsa::rule: seen(own, all) of this evidence policy changes with all, but its sees_all is false: all would be zero");
  static_assert(detail::honest_gain<Gain>,
                "palimpsa::rule: at(lanes, own, all) of this gain policy changes with all, but its sees_all is false: all would be zero");
  static_assert(forget_policy<Forget>,
                "palimpsa::rule: a forget policy needs scope, retain(log_decay) and slope(log_decay, alpha); see policies/forget.hpp");
  static_assert(weighting_policy<Weighting>,
                "palimpsa::rule: a weighting policy needs write(beta, v), slope_v(beta, v) and slope_beta(beta, v); see policies/weighting.hpp");

  using memory_type = Memory;        ///< axis 1
  using evidence_type = Evidence;    ///< axis 2
  using gain_type = Gain;            ///< axis 3
  using forget_type = Forget;        ///< axis 4
  using weighting_type = Weighting;  ///< axis 5

  /// Every cell keeps a precision of its own.
  static constexpr bool keeps_diagonal = std::is_same_v<Memory, memory::diagonal>;
  /// The head keeps the whole precision matrix.
  static constexpr bool keeps_full = std::is_same_v<Memory, memory::full>;
  /// The rule has a state besides eta, a prior, and a variance of the read.
  static constexpr bool keeps_precision = keeps_diagonal || keeps_full;

  /// In natural parameters the write is the bare sum η ← αη + u kᵀ (with J ← αJ + β k² where it is kept): no correction is left.
  /// True for a full memory (exact Bayes), for Palimpsa's corner, and for rules that neither remember nor correct.
  static constexpr bool adds =
      keeps_full ||
      (keeps_diagonal && std::is_same_v<Evidence, evidence::diagonal> && std::is_same_v<Gain, gain::elementwise>) ||
      (!keeps_precision && std::is_same_v<Evidence, evidence::nothing> && std::is_same_v<Gain, gain::plain>);

  static_assert(!keeps_full || (std::is_same_v<Evidence, evidence::full> && std::is_same_v<Gain, gain::exact>),
                "palimpsa::rule: a full memory makes the write exact: name evidence::full and gain::exact with memory::full");
  static_assert(!keeps_full || Forget::scope != gate_scope::key,
                "palimpsa::rule: a full memory forgets with one gate a head: a gate per key would break the symmetry of J");
  static_assert(!keeps_diagonal || !std::is_same_v<Evidence, evidence::nothing>,
                "palimpsa::rule: a diagonal memory must correct its mean: name evidence::diagonal or evidence::full with memory::diagonal");
};

/// Whether a type is a specialisation of rule.
template <class>
inline constexpr bool is_rule = false;
/// It is.
template <class M, class E, class G, class F, class W>
inline constexpr bool is_rule<rule<M, E, G, F, W>> = true;

/// A point of the family: a specialisation of rule, or a type derived from one.
template <class R>
concept any_rule = is_rule<R> || requires {
  typename R::memory_type;
  typename R::evidence_type;
  typename R::gain_type;
  typename R::forget_type;
  typename R::weighting_type;
  R::adds;
};

/// The same rule with another way to forget: with_forget<Palimpsa, forget::per_key>.
template <any_rule R, class Forget>
using with_forget =
    rule<typename R::memory_type, typename R::evidence_type, typename R::gain_type, Forget, typename R::weighting_type>;

/// The same rule with another weighting: with_weighting<Palimpsa, weighting::preweighted>.
template <any_rule R, class Weighting>
using with_weighting =
    rule<typename R::memory_type, typename R::evidence_type, typename R::gain_type, typename R::forget_type, Weighting>;

}  // namespace palimpsa
