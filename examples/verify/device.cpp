#include "verify/device.hpp"

#include <stdexcept>

#if !defined(PALIMPSA_VERIFY_CUDA)

void verify::require_gpu() {
  throw std::runtime_error("--device cuda: this program was built without kernels: configure with PALIMPSA_VERIFY_CUDA=ON, where nvcc is found");
}

palimpsa::io::case_runner verify::rule_on_gpu(palimpsa::io::case_file const&) {
  throw std::runtime_error("--device cuda: this program was built without kernels");
}

#else

#include <cuda_runtime_api.h>

#include <string>

#include "verify/gpu_find.hpp"

void verify::require_gpu() {
  int count = 0;
  cudaError_t const code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) throw std::runtime_error(std::string("--device cuda: no GPU: ") + cudaGetErrorString(code));
  if (count == 0) throw std::runtime_error("--device cuda: no GPU");
}

palimpsa::io::case_runner verify::rule_on_gpu(palimpsa::io::case_file const& given) {
  return find_gpu_rule(given);
}

#endif
