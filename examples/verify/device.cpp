#include "verify/device.hpp"

#include <stdexcept>

#if !defined(PALIMPSA_VERIFY_CUDA)

void verify::require_gpu() {
  throw std::runtime_error("--device cuda: this program was built without CUDA: configure with PALIMPSA_CUDA=ON, where nvcc is found");
}

palimpsa::io::case_runner verify::rule_on_gpu(palimpsa::io::case_file const&) {
  throw std::runtime_error("--device cuda: this program was built without CUDA");
}

#endif
