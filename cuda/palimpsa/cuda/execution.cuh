#pragma once
/// @file
/// The GPU's execution tag, its errors, and the discipline of a call: the caller's stream, the caller's device, nothing left behind.

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>
#include <type_traits>

#include "palimpsa/cuda/entry/abi.cuh"
#include "palimpsa/cuda/entry/status.hpp"
#include "palimpsa/execution.hpp"
#include "palimpsa/shape.hpp"

namespace palimpsa::cuda {

/// The recurrence, token by token, on the GPU. All work goes to `stream` and its device; nothing synchronises, nothing allocates
/// (unless `allocate` is passed), and a call may be captured in a graph.
struct sequential {
  cudaStream_t stream = nullptr;  ///< where the work goes
  unsigned* status = nullptr;     ///< optional word in device memory; status_bits are OR-ed into it, never cleared
  int solve_iterations = 0;       ///< full memory: at most this many CG steps a token; 0 = 4K
  float solve_tolerance = 1e-7f;  ///< full memory: stop when |residual| ≤ tolerance · |q|, relative, so that o(c·q) = c·o(q)
};

/// A call into CUDA that failed. The text has the call and CUDA's own words.
struct error : std::runtime_error {
  /// "palimpsa::cuda: <call>: <CUDA's text>".
  error(std::string const& call, cudaError_t number)
      : std::runtime_error("palimpsa::cuda: " + call + ": " + cudaGetErrorString(number)), code(number) {}
  /// A sentence of our own.
  error(cudaError_t number, std::string const& sentence)
      : std::runtime_error("palimpsa::cuda: " + sentence), code(number) {}
  cudaError_t code;  ///< CUDA's number
};

namespace detail {

/// Throws what a call returned, after clearing it from the thread's last-error slot.
inline void expect(cudaError_t code, char const* call) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw error(call, code);
}

/// Makes the stream's device current, and restores the caller's on the way out.
class device_of_stream {
 public:
  /// Finds the device of `stream`; the default stream's is the current one.
  explicit device_of_stream(cudaStream_t stream) {
    expect(cudaGetDevice(&caller_), "cudaGetDevice");
    device_ = caller_;
#if CUDART_VERSION >= 12080
    // A stream that is being captured may not be asked for its device; a capture runs on the current one.
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    if (stream != nullptr && stream != cudaStreamLegacy && stream != cudaStreamPerThread) {
      expect(cudaStreamIsCapturing(stream, &capturing), "cudaStreamIsCapturing");
      if (capturing == cudaStreamCaptureStatusNone) expect(cudaStreamGetDevice(stream, &device_), "cudaStreamGetDevice");
    }
#endif
    if (device_ != caller_) expect(cudaSetDevice(device_), "cudaSetDevice");
  }
  device_of_stream(device_of_stream const&) = delete;
  device_of_stream& operator=(device_of_stream const&) = delete;
  ~device_of_stream() {
    if (device_ != caller_) static_cast<void>(cudaSetDevice(caller_));
  }
  /// The device now current.
  int device() const { return device_; }

 private:
  int caller_ = 0, device_ = 0;
};

/// One number about a device.
inline int attribute(cudaDeviceAttr what, int device) {
  int value = 0;
  expect(cudaDeviceGetAttribute(&value, what, device), "cudaDeviceGetAttribute");
  return value;
}

/// A grid of `parts` blocks for every head of every sequence, as far as a grid goes; kernels loop over the rest (for_each_head).
inline dim3 grid_of(int parts, std::int64_t heads, std::int64_t sequences) {
  auto const axis = [](std::int64_t n) { return static_cast<unsigned>(n < 65535 ? n : 65535); };
  return {static_cast<unsigned>(parts), axis(heads), axis(sequences)};
}

}  // namespace detail

inline namespace PALIMPSA_CUDA_ABI {

/// Launches, and turns a failure into a sentence. Parameters go by value.
template <class... Parameters>
void launch(void (*kernel)(Parameters...), dim3 blocks, unsigned threads, std::size_t shared, int device,
            cudaStream_t stream, std::type_identity_t<Parameters>... parameters) {
  void* arguments[] = {const_cast<void*>(static_cast<void const*>(&parameters))...};
  cudaError_t const code = cudaLaunchKernel(reinterpret_cast<void const*>(kernel), blocks, dim3(threads), arguments,
                                            shared, stream);
  if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction) {
    static_cast<void>(cudaGetLastError());
    int const major = detail::attribute(cudaDevAttrComputeCapabilityMajor, device);
    int const minor = detail::attribute(cudaDevAttrComputeCapabilityMinor, device);
    std::string const capability = std::to_string(major) + std::to_string(minor);
    throw error(code, "this program has no code for the GPU it met (compute capability " + std::to_string(major) + "." +
                          std::to_string(minor) + "); it was built for " PALIMPSA_CUDA_ARCH_TEXT ": add sm_" + capability +
                          " to CMAKE_CUDA_ARCHITECTURES or nvcc's -gencode");
  }
  detail::expect(code, "cudaLaunchKernel");
}

}  // namespace PALIMPSA_CUDA_ABI

#if defined(__CUDACC__)
/// Calls f(sequence, head) for the heads of this block's part of a grid_of.
template <class F>
__device__ __forceinline__ void for_each_head(scan_shape const& s, F f) {
  for (std::int64_t sequence = blockIdx.z; sequence < s.sequences; sequence += gridDim.z)
    for (std::int64_t head = blockIdx.y; head < s.value_heads; head += gridDim.y) f(sequence, head);
}
#endif

}  // namespace palimpsa::cuda

namespace palimpsa {

/// The GPU's tag runs scan,
template <>
inline constexpr bool runs_scan<cuda::sequential> = true;
/// and step.
template <>
inline constexpr bool runs_step<cuda::sequential> = true;

}  // namespace palimpsa
