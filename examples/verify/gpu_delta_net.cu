#include "verify/gpu_find.cuh"

verify::gpu_rule verify::gpu_rule_in(delta_net_family, rule_choice choice) { return find_gpu_rule<delta_net_family>(choice); }
