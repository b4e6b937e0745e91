#pragma once
/// @file
/// One concept per axis. rule.hpp turns each into the sentence that a wrong policy prints.

#include <concepts>
#include <type_traits>

#include "palimpsa/detail/config.hpp"
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

/// Evidence and gain say whether they read the sum over the keys; a number or a variable would say something else on each path.
template <class P>
concept declares_sees_all = requires {
  { P::sees_all } -> std::same_as<bool const&>;
  typename std::bool_constant<P::sees_all>;
};

}  // namespace palimpsa

namespace palimpsa::inline PALIMPSA_ABI::detail {

/// Division while a program is compiled.
struct constant_lanes {
  /// 1/x.
  template <class T>
  PALIMPSA_HD constexpr T reciprocal(T x) const {
    return 1 / x;
  }
};

/// What a gain says.
template <class P>
struct gain_of {
  /// s_j.
  static constexpr double value(double own, double all) { return P::at(constant_lanes{}, own, all); }
};
/// What an evidence policy says.
template <class P>
struct evidence_of {
  /// c_j.
  static constexpr double value(double own, double all) { return P::seen(own, all); }
};

/// Whether a policy that says it does not read the sum over the keys gives the same without it, over magnitudes that a use of it should
/// show in. The paths leave the sum out then: it is zero there.
template <class P, template <class> class Of>
constexpr bool keeps_to_sees_all() {
  if (P::sees_all) return true;
  constexpr double sizes[] = {1e-3, 0.25, 1, 4, 1e3};
  for (double own : sizes)
    for (double rest : sizes) {
      double const without = Of<P>::value(own, 0), with = Of<P>::value(own, own + rest);
      if (with != without && (with == with || without == without)) return false;
    }
  return true;
}

/// Whether the compiler can tell: the members are constexpr all the way down.
template <class P, template <class> class Of>
concept evaluates_at_compile_time = requires { typename std::bool_constant<keeps_to_sees_all<P, Of>()>; };

/// False if the compiler can tell that sees_all is wrong. What another sentence refuses, and what only a run can tell (check_policies
/// in validate.hpp), passes.
template <class P, template <class> class Of, bool Complete>
constexpr bool honest() {
  if constexpr (!Complete) {
    return true;
  } else if constexpr (!declares_sees_all<P>) {
    return true;
  } else if constexpr (evaluates_at_compile_time<P, Of>) {
    return keeps_to_sees_all<P, Of>();
  } else {
    return true;
  }
}
/// For the static_asserts of rule.hpp.
template <class P>
inline constexpr bool honest_gain = honest<P, gain_of, gain_policy<P>>();
/// For the static_asserts of rule.hpp.
template <class P>
inline constexpr bool honest_evidence = honest<P, evidence_of, evidence_policy<P>>();

}  // namespace palimpsa::detail

namespace palimpsa {

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
