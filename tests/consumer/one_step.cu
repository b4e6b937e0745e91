// A stranger's CUDA source: one token through Palimpsa on a stream of its own. Compiled, not run.
#include <cuda_bf16.h>

#include "palimpsa/cuda/scan.cuh"
#include "palimpsa/instances/palimpsa.hpp"

void one_step(palimpsa::step_arguments<__nv_bfloat16> const& arguments, cudaStream_t stream, palimpsa::workspace scratch) {
  palimpsa::cuda::sequential how;
  how.stream = stream;
  palimpsa::step<palimpsa::Palimpsa>(how, arguments, scratch);
}
