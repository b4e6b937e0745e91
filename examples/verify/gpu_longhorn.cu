#include "verify/gpu_find.cuh"

verify::gpu_rule verify::gpu_rule_in(longhorn_family, rule_choice choice) { return find_gpu_rule<longhorn_family>(choice); }
