#include "verify/gpu_find.cuh"

verify::gpu_rule verify::gpu_rule_in(gated_delta_net_family, rule_choice choice) { return find_gpu_rule<gated_delta_net_family>(choice); }
