#pragma once
// From what a case file names to a type of the library:
//
//     rule                                     write            gain = implicit            log_decay
//     palimpsa mamba2 longhorn diagonal_kalman one each         not read                   absent or rank 3: a gate a head; rank 4: a key
//     gated_delta_net                          GatedDeltaNet    ImplicitGatedDeltaNet      as above
//     delta_net                                GatedDeltaNet    ImplicitGatedDeltaNet      no gate: one in the file is refused by the library
//     mesa_net                                 MesaNet          not read                   a gate a head: a gate a key is refused by the library
//
// and value_weighting is the weighting axis. Each family is instantiated in a unit of its own.

#include <type_traits>

#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/longhorn.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/policies/forget.hpp"
#include "palimpsa/rule.hpp"

namespace verify {

/// What a case says of a rule beside its name.
struct rule_choice {
  bool gate_per_key = false;
  bool preweighted = false;
  bool exact_gain = false;  ///< of a DeltaNet
};

namespace detail {

template <class Rule, class F>
auto with_weighting_of(rule_choice choice, F f) {
  if (choice.preweighted) return f(std::type_identity<palimpsa::with_weighting<Rule, palimpsa::weighting::preweighted>>{});
  return f(std::type_identity<Rule>{});
}

template <class Rule, class F>
auto with_gate_of(rule_choice choice, F f) {
  if (choice.gate_per_key) return with_weighting_of<palimpsa::with_forget<Rule, palimpsa::forget::per_key>>(choice, f);
  return with_weighting_of<Rule>(choice, f);
}

}  // namespace detail

/// One family of rules: visit(choice, f) returns f(std::type_identity<Rule>).
template <class Write>
struct gated_family {
  template <class F>
  static auto visit(rule_choice choice, F f) {
    return detail::with_gate_of<Write>(choice, f);
  }
};
using palimpsa_family = gated_family<palimpsa::Palimpsa>;
using mamba2_family = gated_family<palimpsa::Mamba2>;
using longhorn_family = gated_family<palimpsa::Longhorn>;
using diagonal_kalman_family = gated_family<palimpsa::DiagonalKalman>;

struct gated_delta_net_family {
  template <class F>
  static auto visit(rule_choice choice, F f) {
    if (choice.exact_gain) return detail::with_gate_of<palimpsa::ImplicitGatedDeltaNet>(choice, f);
    return detail::with_gate_of<palimpsa::GatedDeltaNet>(choice, f);
  }
};

struct delta_net_family {
  template <class F>
  static auto visit(rule_choice choice, F f) {
    if (choice.exact_gain) return detail::with_weighting_of<palimpsa::ImplicitDeltaNet>(choice, f);
    return detail::with_weighting_of<palimpsa::DeltaNet>(choice, f);
  }
};

struct mesa_net_family {
  template <class F>
  static auto visit(rule_choice choice, F f) {
    return detail::with_weighting_of<palimpsa::MesaNet>(choice, f);
  }
};

}  // namespace verify
