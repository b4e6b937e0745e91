// The GPU's half of cuda_compare.cpp: tensors go to device memory, the same scan runs on another tag, results come back.

#include "cuda_compare.hpp"

#include <cuda_runtime.h>

#include <memory>

#include "palimpsa/cuda/check.cuh"
#include "palimpsa/cuda/scan.cuh"
#include "palimpsa/instances/palimpsa.hpp"

namespace {

void must(cudaError_t code) { palimpsa::cuda::detail::expect(code, "cuda_compare"); }

/// Device memory for n floats.
class floats {
 public:
  explicit floats(std::size_t n) : count_(n) { must(cudaMalloc(&data_, n * sizeof(float))); }
  explicit floats(std::vector<float> const& here) : floats(here.size()) {
    must(cudaMemcpy(data_, here.data(), count_ * sizeof(float), cudaMemcpyHostToDevice));
  }
  floats(floats const&) = delete;
  floats& operator=(floats const&) = delete;
  ~floats() { static_cast<void>(cudaFree(data_)); }

  float* get() const { return data_; }
  std::vector<float> here() const {
    std::vector<float> x(count_);
    must(cudaMemcpy(x.data(), data_, count_ * sizeof(float), cudaMemcpyDeviceToHost));
    return x;
  }

 private:
  float* data_ = nullptr;
  std::size_t count_;
};

}  // namespace

bool scan_on_gpu(problem const& p, result& r, std::string& device) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return false;
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, 0));
  device = properties.name;

  floats const q(p.q), k(p.k), v(p.v), beta(p.beta), log_decay(p.log_decay), prior(p.prior);
  std::size_t const states = static_cast<std::size_t>(p.B * p.HV * p.V * p.K);
  floats const out(p.v.size()), eta(states), evidence(states);

  palimpsa::scan_inputs<float> in;
  in.q = {q.get(), {p.B, p.T, p.HK, p.K}};
  in.k = {k.get(), {p.B, p.T, p.HK, p.K}};
  in.v = {v.get(), {p.B, p.T, p.HV, p.V}};
  in.beta = {beta.get(), {p.B, p.T, p.HV, p.V}};
  in.log_decay = {log_decay.get(), {p.B, p.T, p.HV}};
  in.prior = {prior.get(), {p.HV}};
  palimpsa::scan_outputs<float> to;
  to.out = {out.get(), {p.B, p.T, p.HV, p.V}};
  to.final_eta = {eta.get(), {p.B, p.HV, p.V, p.K}};
  to.final_evidence = {evidence.get(), {p.B, p.HV, p.V, p.K}};

  palimpsa::cuda::sequential const how;  // the default stream
  palimpsa::scan<palimpsa::Palimpsa>(how, in, to, palimpsa::allocate);
  palimpsa::cuda::check<palimpsa::Palimpsa>(how, in);  // waits, and tells what only the device knew
  r.out = out.here();
  r.final_eta = eta.here();
  r.final_evidence = evidence.here();
  return true;
}
