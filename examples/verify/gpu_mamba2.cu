#include "verify/gpu_find.cuh"

verify::gpu_rule verify::gpu_rule_in(mamba2_family, rule_choice choice) { return find_gpu_rule<mamba2_family>(choice); }
