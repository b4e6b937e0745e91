#pragma once
// Host tensors in device memory: the same strides and the same gaps, so that what a kernel would do to the host's memory it does to
// the copy.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "palimpsa/cuda/execution.cuh"
#include "palimpsa/view.hpp"

namespace verify {

/// `count` numbers in device memory.
class device_block {
 public:
  explicit device_block(std::size_t bytes) {
    if (bytes > 0) palimpsa::cuda::detail::expect(cudaMalloc(&memory_, bytes), "cudaMalloc");
  }
  device_block(device_block const&) = delete;
  device_block& operator=(device_block const&) = delete;
  ~device_block() { static_cast<void>(cudaFree(memory_)); }
  void* get() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

/// A host view and its copy on the device. A tensor that is written comes back with download().
template <class T>
class mirror {
 public:
  explicit mirror(palimpsa::view<T> host) : host_(host), first_(0), size_(span_of(host, first_)), block_(size_ * sizeof(T)) {
    if (size_ > 0) copy(block_.get(), host.data + first_, cudaMemcpyHostToDevice);
  }

  /// As a call on the device takes it.
  palimpsa::view<T> device() const {
    palimpsa::view<T> v = host_;
    if (size_ > 0) v.data = static_cast<T*>(block_.get()) - first_;
    return v;
  }

  /// Back to the host, gaps and all.
  void download() const {
    if (size_ > 0) copy(host_.data + first_, block_.get(), cudaMemcpyDeviceToHost);
  }

 private:
  /// Elements from the lowest to the highest address of a view; `first` is the lowest, relative to data.
  static std::size_t span_of(palimpsa::view<T> const& v, std::int64_t& first) {
    std::int64_t last = 0;
    if (!v.present()) return 0;
    for (int axis = 0; axis < v.rank; ++axis) {
      if (v.extent[axis] == 0) return 0;
      std::int64_t const reach = (v.extent[axis] - 1) * v.stride[axis];
      (reach < 0 ? first : last) += reach;
    }
    return static_cast<std::size_t>(last - first + 1);
  }

  void copy(void const* to, void const* from, cudaMemcpyKind kind) const {
    palimpsa::cuda::detail::expect(cudaMemcpy(const_cast<void*>(to), from, size_ * sizeof(T), kind), "cudaMemcpy");
  }

  palimpsa::view<T> host_;
  std::int64_t first_;
  std::size_t size_;
  device_block block_;
};

/// A host list of boundaries or slots, dense, and its copy on the device.
class list_mirror {
 public:
  explicit list_mirror(palimpsa::index_view host)
      : host_(host), size_(host.present() ? static_cast<std::size_t>(host.extent[0] * host.extent[1]) * (host.wide ? 8 : 4) : 0), block_(size_) {
    if (size_ > 0)
      palimpsa::cuda::detail::expect(cudaMemcpy(block_.get(), host.data, size_, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  palimpsa::index_view device() const {
    palimpsa::index_view v = host_;
    if (size_ > 0) v.data = block_.get();
    return v;
  }

 private:
  palimpsa::index_view host_;
  std::size_t size_;
  device_block block_;
};

}  // namespace verify
