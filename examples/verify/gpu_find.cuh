#pragma once
// One family of rules on the GPU, as gpu_*.cu instantiate it.

#include <type_traits>

#include "palimpsa/error.hpp"
#include "verify/gpu_rules.hpp"
#include "verify/gpu_run.cuh"

namespace verify {

/// A rule of a family. Each axis is compiled with the others at their usual values: a gate a key, weighted values and both at once
/// would be twice the minutes of nvcc for what is orthogonal in the kernels too.
template <class Family>
gpu_rule find_gpu_rule(rule_choice choice) {
  if (choice.gate_per_key && choice.preweighted)
    throw palimpsa::unsupported_error("this program was built without kernels for a gate a key together with preweighted values");
  return Family::visit(choice, []<class Rule>(std::type_identity<Rule>) -> gpu_rule {
    constexpr bool both = Rule::forget_type::scope == palimpsa::gate_scope::key &&
                          std::is_same_v<typename Rule::weighting_type, palimpsa::weighting::preweighted>;
    if constexpr (both) {
      return nullptr;
    } else {
      return &run_on_gpu<Rule>;
    }
  });
}

}  // namespace verify
