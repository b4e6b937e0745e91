#pragma once
// Rules picked at run time. The templates behind these calls are instantiated once, in rules_*.cpp, so that a test over
// all rules compiles in a second.

#include <cstddef>
#include <type_traits>
#include <vector>

#include "palimpsa/arguments.hpp"
#include "palimpsa/execution.hpp"
#include "support/problem.hpp"

namespace palimpsa_test {

/// palimpsa::scan on the sequential path, and the size of its workspace. float, double, bfloat16, half.
template <class Storage>
void run_scan(rule_name rule, palimpsa::sequential how, palimpsa::scan_inputs<Storage> const& in,
              palimpsa::scan_outputs<Storage> const& out, palimpsa::workspace scratch);
template <class Storage>
std::size_t scan_workspace(rule_name rule, palimpsa::sequential how, palimpsa::scan_inputs<Storage> const& in);

/// palimpsa::step, and the size of its workspace. float and double, see has_step.
template <class Storage>
void run_step(rule_name rule, palimpsa::sequential how, palimpsa::step_arguments<Storage> const& a,
              palimpsa::workspace scratch);
template <class Storage>
std::size_t step_workspace(rule_name rule, palimpsa::sequential how, palimpsa::step_arguments<Storage> const& a);

/// Whether this rule is instantiated for a type. Every write has one gate a head in float and in double. The axes
/// forget and weighting, and the storage, are orthogonal to the write: their other values go with a few writes that
/// differ in what they keep.
template <class Storage> constexpr bool instantiated(rule_name r) {
  bool const wide = std::is_same_v<Storage, double>, narrow = std::is_same_v<Storage, float>;
  bool const adds = r.write == kind::mamba2, delta = r.write == kind::delta, implicit = r.write == kind::implicit_delta;
  bool const palimpsa = r.write == kind::palimpsa, kalman = r.write == kind::diagonal_kalman,
             mesa = r.write == kind::mesa_net;
  if (r.preweighted) return wide && r.forget == gates::head && (adds || palimpsa || implicit || mesa);
  switch (r.forget) {
    case gates::head:
      return wide || narrow || palimpsa || delta || mesa;
    case gates::key:
      return (wide && (adds || palimpsa || delta || kalman)) || (narrow && kalman);
    case gates::none:
      return wide && (adds || delta);
    case gates::constant:
      return wide && (adds || palimpsa);
  }
  return false;
}

/// All of them.
template <class Storage> std::vector<rule_name> every_rule() {
  std::vector<rule_name> rules;
  for (gates forget : {gates::head, gates::key, gates::none, gates::constant})
    for (kind write : every_kind)
      for (bool preweighted : {false, true})
        if (rule_name const r{write, forget, preweighted}; instantiated<Storage>(r)) rules.push_back(r);
  return rules;
}

/// Whether run_step knows the rule.
template <class Storage> constexpr bool has_step(rule_name r) {
  return instantiated<Storage>(r) && !r.preweighted &&
         (r.forget == gates::head || (r.forget == gates::key && r.write == kind::diagonal_kalman));
}

}  // namespace palimpsa_test
