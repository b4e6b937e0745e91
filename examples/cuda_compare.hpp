#pragma once
// The boundary between cuda_compare.cpp (a host compiler, the library on the CPU) and cuda_compare.cu (nvcc, the library on the GPU).

#include <cstdint>
#include <string>
#include <vector>

/// A problem in host memory, dense, as the contract's shapes say.
struct problem {
  std::int64_t B, T, HK, HV, K, V;
  std::vector<float> q, k, v, beta, log_decay, prior;
};

/// What a scan leaves.
struct result {
  std::vector<float> out, final_eta, final_evidence;
};

/// Palimpsa on the GPU; the name of the GPU goes to `device`. False where there is none.
bool scan_on_gpu(problem const& p, result& r, std::string& device);
