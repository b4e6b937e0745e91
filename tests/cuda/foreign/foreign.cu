// One rule compiled for a GPU that hardly any machine has (see CMakeLists.txt): a program that meets a GPU it has no code for. It also
// is a second set of kernels, for other GPUs, in one program with the first.

#include "cuda/foreign/foreign.hpp"
#include "units/unit.cuh"

palimpsa_units::gpu_calls<float> palimpsa_test::foreign_mamba2() { return palimpsa_units::gpu_row<palimpsa::Mamba2, float>::all(); }
