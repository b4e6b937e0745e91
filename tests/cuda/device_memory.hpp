#pragma once
// Memory, streams and events of a GPU for the tests, owned by objects.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "palimpsa/cuda/execution.cuh"
#include "palimpsa/execution.hpp"
#include "cuda/placed.hpp"

namespace palimpsa_test {

using palimpsa::cuda::detail::expect;

/// Whether there is a GPU; leaves no error behind.
inline int device_count() {
  int n = 0;
  if (cudaGetDeviceCount(&n) != cudaSuccess) n = 0;
  static_cast<void>(cudaGetLastError());
  return n;
}

/// Bytes on the current device, all ones: a NaN in every type. With PALIMPSA_TEST_UNPOISONED in the environment (for a tool that reports
/// reads of what nobody wrote) as they come.
class device_bytes {
 public:
  device_bytes() = default;
  explicit device_bytes(std::size_t size) : size_(size) {
    if (size == 0) return;
    expect(cudaMalloc(&memory_, size), "cudaMalloc");
    if (std::getenv("PALIMPSA_TEST_UNPOISONED") == nullptr) poison();
  }
  device_bytes(device_bytes&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  device_bytes& operator=(device_bytes&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~device_bytes() { static_cast<void>(cudaFree(memory_)); }

  void* data() const { return memory_; }
  std::size_t size() const { return size_; }
  void poison() {
    expect(cudaMemset(memory_, 0xff, size_), "cudaMemset");
    expect(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // streams of the tests do not wait for the legacy stream
  }
  operator palimpsa::workspace() const { return {static_cast<std::byte*>(memory_), size_}; }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// A tensor in device memory: the twin of placed<T>. What it says of its contents, it reads from the device, after all work there.
template <class T>
class on_device {
 public:
  on_device() = default;
  on_device(sizes const& e, layout how) : on_device(placed<T>(e, how)) {}
  on_device(sizes const& e, layout how, numbers const& values) : on_device(placed<T>(e, how, values)) {}

  geometry const& place() const { return here_.place(); }
  palimpsa::view<T> view() const { return place().view(static_cast<T*>(there_.data())); }
  operator palimpsa::view<T>() const { return view(); }
  operator palimpsa::view<T const>() const { return view(); }

  numbers values() const { return download().values(); }
  std::vector<unsigned char> bits() const { return download().bits(); }
  bool still_poisoned() const { return download().still_poisoned(); }
  bool gaps_untouched() const { return download().gaps_untouched(); }

  /// New values in the elements.
  void fill(numbers const& values) {
    here_.fill(values);
    upload();
  }
  /// NaN everywhere.
  void poison() {
    here_.poison();
    upload();
  }

 private:
  explicit on_device(placed<T>&& tensor) : here_(std::move(tensor)), there_(bytes()) { upload(); }

  std::size_t bytes() const { return static_cast<std::size_t>(place().count) * sizeof(T); }
  void upload() {
    if (bytes() > 0) expect(cudaMemcpy(there_.data(), here_.base(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
    expect(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  placed<T> const& download() const {
    expect(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (bytes() > 0)
      expect(cudaMemcpy(static_cast<void*>(here_.base()), there_.data(), bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return here_;
  }

  mutable placed<T> here_;
  device_bytes there_;
};

/// A stream of its own, which does not wait for the legacy stream.
class test_stream {
 public:
  test_stream() { expect(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  test_stream(test_stream const&) = delete;
  test_stream& operator=(test_stream const&) = delete;
  ~test_stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A status word of a call.
class status_word {
 public:
  status_word() : word_(sizeof(unsigned)) { clear(); }
  void clear() {
    expect(cudaMemset(word_.data(), 0, sizeof(unsigned)), "cudaMemset");
    expect(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  unsigned* data() const { return static_cast<unsigned*>(word_.data()); }
  unsigned read() const {
    unsigned value = 0;
    expect(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    expect(cudaMemcpy(&value, data(), sizeof value, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return value;
  }

 private:
  device_bytes word_;
};

}  // namespace palimpsa_test

/// Leaves a test case where there is no GPU. ctest shows the file as skipped.
#define PALIMPSA_TEST_NEEDS_GPU() \
  do {                            \
    if (palimpsa_test::device_count() == 0) SKIP("no CUDA device"); \
  } while (false)
