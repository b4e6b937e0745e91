#pragma once
// The rule a case names, on the GPU.

#include <type_traits>

#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/run_options.hpp"
#include "verify/gpu_run.hpp"
#include "verify/rules.hpp"

namespace verify {

/// Runs a case on the GPU.
using gpu_rule = palimpsa::io::named_tensors (*)(palimpsa::io::case_file const&, palimpsa::io::run_options const&);

/// The rule of any family.
inline gpu_rule find_gpu_rule(palimpsa::io::case_file const& given) {
  return with_family(given, []<class Family>(Family, rule_choice choice) {
    return Family::visit(choice, []<class Rule>(std::type_identity<Rule>) -> gpu_rule { return &run_on_gpu<Rule>; });
  });
}

}  // namespace verify
