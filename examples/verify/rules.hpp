#pragma once
// The rule a case names, as calls: what verification has to know of it, and what runs it. Families are instantiated in rule_*.cpp.

#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/rule_facts.hpp"
#include "palimpsa/io/run_case_stored.hpp"
#include "verify/dispatch.hpp"

namespace verify {

/// A rule behind a function pointer.
struct runnable_rule {
  palimpsa::io::rule_facts facts;
  palimpsa::io::named_tensors (*run)(palimpsa::io::case_file const&, palimpsa::io::run_options const&);  ///< on the CPU
};

/// A rule of any family.
template <class Family>
runnable_rule find_rule(rule_choice choice) {
  return Family::visit(choice, []<class Rule>(std::type_identity<Rule>) {
    return runnable_rule{palimpsa::io::facts_of<Rule>(), palimpsa::io::run_case_stored<Rule>};
  });
}

/// The same, compiled in rule_*.cpp.
runnable_rule rule_in(palimpsa_family, rule_choice choice);
runnable_rule rule_in(mamba2_family, rule_choice choice);
runnable_rule rule_in(longhorn_family, rule_choice choice);
runnable_rule rule_in(diagonal_kalman_family, rule_choice choice);
runnable_rule rule_in(gated_delta_net_family, rule_choice choice);
runnable_rule rule_in(delta_net_family, rule_choice choice);
runnable_rule rule_in(mesa_net_family, rule_choice choice);

/// What a case says of its rule beside the name.
inline rule_choice choice_of(palimpsa::io::case_file const& given) {
  return {given.log_decay && given.log_decay->shape.size() == 4,
          given.weighting == palimpsa::io::value_weighting::preweighted, given.gain == palimpsa::io::delta_gain::exact};
}

/// f(family, choice) for the family that a case names; its rule is one of palimpsa::io::case_rules.
template <class F>
auto with_family(palimpsa::io::case_file const& given, F f) {
  rule_choice const choice = choice_of(given);
  if (given.rule == "mamba2") return f(mamba2_family{}, choice);
  if (given.rule == "longhorn") return f(longhorn_family{}, choice);
  if (given.rule == "delta_net") return f(delta_net_family{}, choice);
  if (given.rule == "gated_delta_net") return f(gated_delta_net_family{}, choice);
  if (given.rule == "mesa_net") return f(mesa_net_family{}, choice);
  if (given.rule == "diagonal_kalman") return f(diagonal_kalman_family{}, choice);
  return f(palimpsa_family{}, choice);
}

/// The rule that a case names.
inline runnable_rule rule_of(palimpsa::io::case_file const& given) {
  return with_family(given, [](auto family, rule_choice choice) { return rule_in(family, choice); });
}

}  // namespace verify
