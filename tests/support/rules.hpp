#pragma once
// Rules picked at run time. The templates behind these calls are instantiated once, in rules.cpp, so that a test over all rules
// compiles in a second.

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

/// palimpsa::step, and the size of its workspace. float and double; one gate a head or a key.
template <class Storage>
void run_step(rule_name rule, palimpsa::sequential how, palimpsa::step_arguments<Storage> const& a, palimpsa::workspace scratch);
template <class Storage>
std::size_t step_workspace(rule_name rule, palimpsa::sequential how, palimpsa::step_arguments<Storage> const& a);

/// Whether rules.cpp instantiates this rule for a type. Every write has one gate a head in every type. The axes forget and
/// weighting are orthogonal to the rest: their other values are held against the oracle in double, a few of them in float.
template <class Storage>
constexpr bool instantiated(rule_name r) {
  bool const wide = std::is_same_v<Storage, double>, narrow = std::is_same_v<Storage, float>;
  if (r.preweighted) return wide && r.forget == gates::head;
  switch (r.forget) {
    case gates::head: return true;
    case gates::key: return r.write != kind::mesa_net && (wide || (narrow && r.write == kind::diagonal_kalman));
    case gates::none: return wide && (r.write == kind::mamba2 || r.write == kind::delta || r.write == kind::implicit_delta);
    case gates::constant: return wide && (r.write == kind::mamba2 || r.write == kind::palimpsa);
  }
  return false;
}

/// All of them.
template <class Storage>
std::vector<rule_name> every_rule() {
  std::vector<rule_name> rules;
  for (gates forget : {gates::head, gates::key, gates::none, gates::constant})
    for (kind write : every_kind)
      for (bool preweighted : {false, true})
        if (rule_name const r{write, forget, preweighted}; instantiated<Storage>(r)) rules.push_back(r);
  return rules;
}

/// Whether run_step knows the rule.
inline bool has_step(rule_name r) { return !r.preweighted && (r.forget == gates::head || r.forget == gates::key); }

}  // namespace palimpsa_test
