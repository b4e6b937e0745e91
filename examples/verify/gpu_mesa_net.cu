#include "verify/gpu_find.cuh"

verify::gpu_rule verify::gpu_rule_in(mesa_net_family, rule_choice choice) { return find_gpu_rule<mesa_net_family>(choice); }
