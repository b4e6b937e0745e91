#pragma once
/// @file
/// What a call could not say without waiting: check() waits, and tells what the kernels found in device memory. For debugging: every
/// check synchronises the stream, and the ones that look at tensors allocate host memory and copy to it.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "palimpsa/arguments.hpp"
#include "palimpsa/cuda/execution.cuh"
#include "palimpsa/error.hpp"
#include "palimpsa/validate_values.hpp"

namespace palimpsa::cuda {

/// The bits of a status word as a sentence; empty for 0.
inline std::string status_text(unsigned status) {
  struct {
    unsigned bit;
    char const* text;
  } const known[] = {
      {bad_segment, "a segment of cu_seqlens that falls, leaves [0, T], or does not start at 0 and end at T (taken as empty)"},
      {bad_slot, "a slot_in or slot_out outside the pool (its row was inert, or its state was not written)"},
      {positive_gate, "a log_decay above 0"},
      {bad_prior, "a prior that is not above 0, normal and finite"},
      {negative_beta, "a beta below 0"},
      {negative_evidence, "evidence below 0 in a state that was read"}};
  std::string text;
  for (auto const& k : known) {
    if ((status & k.bit) == 0) continue;
    text += (text.empty() ? "" : "; ") + std::string(k.text);
    status &= ~k.bit;
  }
  if (status != 0) text += (text.empty() ? "" : "; ") + ("unknown bits " + std::to_string(status));
  return text;
}

/// Waits for the stream of the tag and throws if the kernels found in device memory what the contract forbids, since how.status was
/// last 0. The word is left as it is. Without a status word it only waits.
/// @throws argument_error  naming the tensors and what was found
/// @throws cuda::error     the work on the stream failed; its text is CUDA's
inline void check(sequential const& how) {
  detail::device_of_stream const current(how.stream);
  detail::expect(cudaStreamSynchronize(how.stream), "cudaStreamSynchronize");
  if (how.status == nullptr) return;
  unsigned found = 0;
  detail::expect(cudaMemcpyAsync(&found, how.status, sizeof found, cudaMemcpyDeviceToHost, how.stream), "cudaMemcpyAsync");
  detail::expect(cudaStreamSynchronize(how.stream), "cudaStreamSynchronize");
  if (found != 0) throw argument_error("contents of device memory", "what the contract allows", status_text(found));
}

namespace detail {

/// A strided tensor of device memory, dense and row-major on the host. Copies what its elements span, axis by axis where that is more
/// than a few times the elements.
template <class T>
class host_copy {
 public:
  host_copy(T const* data, int rank, std::int64_t const* extent, std::int64_t const* stride, cudaStream_t stream) : stream_(stream) {
    std::int64_t count = rank == 0 ? 0 : 1;
    for (int axis = 0; axis < rank; ++axis) count *= extent[axis];
    elements_.reserve(static_cast<std::size_t>(count));
    if (count > 0) take(data, rank, extent, stride);
  }
  T const* data() const { return elements_.data(); }

 private:
  void take(T const* data, int rank, std::int64_t const* extent, std::int64_t const* stride) {
    std::int64_t before = 0, after = 0, count = 1;
    for (int axis = 0; axis < rank; ++axis) {
      std::int64_t const reach = (extent[axis] - 1) * stride[axis];
      (reach < 0 ? before : after) += reach;
      count *= extent[axis];
    }
    if (rank > 0 && after - before >= 4 * count + 1024) {
      for (std::int64_t i = 0; i < extent[0]; ++i) take(data + i * stride[0], rank - 1, extent + 1, stride + 1);
      return;
    }
    std::vector<T> spanned(static_cast<std::size_t>(after - before + 1));
    expect(cudaMemcpyAsync(spanned.data(), data + before, spanned.size() * sizeof(T), cudaMemcpyDeviceToHost, stream_),
           "cudaMemcpyAsync");
    expect(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    gather(spanned.data() - before, rank, extent, stride);
  }
  void gather(T const* from, int rank, std::int64_t const* extent, std::int64_t const* stride) {
    if (rank == 0) return elements_.push_back(*from);
    for (std::int64_t i = 0; i < extent[0]; ++i) gather(from + i * stride[0], rank - 1, extent + 1, stride + 1);
  }

  cudaStream_t stream_;
  std::vector<T> elements_;
};

/// A view's elements on the host.
template <class T>
class host_view {
 public:
  host_view(view<T const> const& there, cudaStream_t stream)
      : copy_(there.data, there.rank, there.extent, there.stride, stream), here_(there) {
    here_.data = copy_.data();
    dense_strides(there.rank, there.extent, here_.stride);
  }
  host_view(host_view const&) = delete;
  host_view& operator=(host_view const&) = delete;
  operator view<T const>() const { return here_; }

 private:
  host_copy<T> copy_;
  view<T const> here_;
};

/// A list of indices on the host.
class host_list {
 public:
  host_list(index_view const& there, cudaStream_t stream)
      : wide_(there.wide ? static_cast<std::int64_t const*>(there.data) : nullptr, there.wide ? there.rank : 0, there.extent,
              there.stride, stream),
        narrow_(there.wide ? nullptr : static_cast<std::int32_t const*>(there.data), there.wide ? 0 : there.rank, there.extent,
                there.stride, stream),
        here_(there) {
    if (there.wide)
      here_.data = wide_.data();
    else
      here_.data = narrow_.data();
    here_.stride[0] = there.rank == 2 ? there.extent[1] : 1;
    here_.stride[1] = 1;
  }
  host_list(host_list const&) = delete;
  host_list& operator=(host_list const&) = delete;
  operator index_view() const { return here_; }

 private:
  host_copy<std::int64_t> wide_;
  host_copy<std::int32_t> narrow_;
  index_view here_;
};

}  // namespace detail

/// Waits for the stream, copies boundaries, gates, β, prior and initial evidence of a scan to the host and checks them as the CPU's scan would, so that the exception names tensor, element, expected and given. Then as check(how).
/// @throws argument_error, cuda::error
template <any_rule Rule, class Storage>
void check(sequential const& how, scan_inputs<Storage, float> const& in) {
  scan_shape const s = check_shapes<Rule>(in);
  detail::device_of_stream const current(how.stream);
  detail::expect(cudaStreamSynchronize(how.stream), "cudaStreamSynchronize");
  detail::host_list const cu_seqlens(in.cu_seqlens, how.stream);
  detail::host_view<float> const log_decay(in.log_decay, how.stream), beta(in.beta, how.stream), prior(in.prior, how.stream),
      evidence(in.initial_evidence, how.stream);
  scan_inputs<Storage, float> here = in;
  here.cu_seqlens = cu_seqlens, here.log_decay = log_decay, here.beta = beta, here.prior = prior, here.initial_evidence = evidence;
  check_values<Rule>(here, s);
  check(how);
}

/// Waits for the stream, copies slots, gates, β, prior and the evidence that live rows read of a step to the host and checks them as the
/// CPU's step would: also what no kernel sees, a slot that is written twice in a call. Inert rows are not looked at. Then as check(how).
/// After a step in place the pool holds what that step left.
/// @throws argument_error, cuda::error
template <any_rule Rule, class Storage>
void check(sequential const& how, step_arguments<Storage, float> const& a) {
  scan_shape const s = check_shapes<Rule>(a);
  detail::device_of_stream const current(how.stream);
  detail::expect(cudaStreamSynchronize(how.stream), "cudaStreamSynchronize");
  detail::host_list const slot_in(a.slot_in, how.stream), slot_out(a.slot_out, how.stream);
  detail::host_view<float> const log_decay(a.log_decay, how.stream), beta(a.beta, how.stream), prior(a.prior, how.stream);
  step_arguments<Storage, float> here = a;
  here.slot_in = slot_in, here.slot_out = slot_out, here.log_decay = log_decay, here.beta = beta, here.prior = prior;
  std::vector<written_slot> scratch(static_cast<std::size_t>(written_slots(here, s)));
  check_values<Rule>(here, s, scratch.data());
  for (std::int64_t row = 0; row < s.batch && s.tokens > 0 && a.evidence.present(); ++row) {
    std::int64_t const slot = slot_read(here, row);
    if (slot < 0) continue;
    detail::host_view<float> const evidence(palimpsa::detail::slice_of(view<float const>(a.evidence), slot), how.stream);
    palimpsa::detail::check_evidence<Rule>("evidence", view<float const>(evidence), slot);
  }
  check(how);
}

}  // namespace palimpsa::cuda
