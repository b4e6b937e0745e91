#include "verify/gpu_find.cuh"

verify::gpu_rule verify::gpu_rule_in(diagonal_kalman_family, rule_choice choice) { return find_gpu_rule<diagonal_kalman_family>(choice); }
