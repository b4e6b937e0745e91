#pragma once
// The rule a case names, on the GPU. Families are instantiated in gpu_*.cu, which see neither Eigen nor JSON.

#include "palimpsa/io/case_call.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/run_options.hpp"
#include "verify/dispatch.hpp"

namespace verify {

/// Runs a case on the GPU.
using gpu_rule = palimpsa::io::named_tensors (*)(palimpsa::io::case_file const&, palimpsa::io::run_options const&);

gpu_rule gpu_rule_in(palimpsa_family, rule_choice choice);
gpu_rule gpu_rule_in(mamba2_family, rule_choice choice);
gpu_rule gpu_rule_in(longhorn_family, rule_choice choice);
gpu_rule gpu_rule_in(diagonal_kalman_family, rule_choice choice);
gpu_rule gpu_rule_in(gated_delta_net_family, rule_choice choice);
gpu_rule gpu_rule_in(delta_net_family, rule_choice choice);
gpu_rule gpu_rule_in(mesa_net_family, rule_choice choice);

}  // namespace verify
