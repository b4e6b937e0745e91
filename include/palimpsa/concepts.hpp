#pragma once
/// @file
/// One concept per axis. rule.hpp turns each into the sentence that a wrong policy prints.

#include <concepts>
#include <type_traits>

#include "palimpsa/lanes.hpp"
#include "palimpsa/policies/forget.hpp"
#include "palimpsa/policies/memory.hpp"
#include "palimpsa/policies/slopes.hpp"

namespace palimpsa {

/// The memory axis is closed: it fixes the layout of the state.
template <class P>
concept memory_policy =
    std::is_same_v<P, memory::nothing> || std::is_same_v<P, memory::diagonal> || std::is_same_v<P, memory::full>;

/// What the correction sees: see policies/evidence.hpp.
template <class P>
concept evidence_policy = requires(double own, double all) {
  { P::sees_all } -> std::convertible_to<bool>;
  { P::seen(own, all) } -> std::same_as<double>;
  { P::slope(own, all) } -> std::same_as<slopes<double>>;
};

/// How far a cell moves: see policies/gain.hpp.
template <class P>
concept gain_policy = requires(serial_lanes lanes, double own, double all) {
  { P::sees_all } -> std::convertible_to<bool>;
  { P::at(lanes, own, all) } -> std::same_as<double>;
  { P::slope(lanes, own, all) } -> std::same_as<slopes<double>>;
};

/// How a rule forgets: see policies/forget.hpp.
template <class P>
concept forget_policy = requires(double log_decay, double alpha) {
  { P::scope } -> std::convertible_to<gate_scope>;
  { P::retain(log_decay) } -> std::same_as<double>;
  { P::slope(log_decay, alpha) } -> std::same_as<double>;
};

/// Whether values arrive weighted: see policies/weighting.hpp.
template <class P>
concept weighting_policy = requires(double beta, double v) {
  { P::write(beta, v) } -> std::same_as<double>;
  { P::slope_v(beta, v) } -> std::same_as<double>;
  { P::slope_beta(beta, v) } -> std::same_as<double>;
};

}  // namespace palimpsa
