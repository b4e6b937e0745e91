#pragma once
/// @file
/// The public entry points on the GPU: the scan and step of the CPU side, on a tag that carries the stream.
/// Tensors lie in device memory; shapes are checked before anything is launched, contents by the kernels (see check.cuh).

#include <cstddef>
#include <type_traits>

#include "palimpsa/arguments.hpp"
#include "palimpsa/cuda/entry/dispatch.cuh"
#include "palimpsa/cuda/execution.cuh"
#include "palimpsa/cuda/machine/storage.cuh"
#include "palimpsa/validate.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa {
namespace cuda::detail {

/// check_shapes for kernels that calculate in float32.
template <any_rule Rule, class Call>
scan_shape checked_shape(Call const& call) {
  static_assert(std::is_same_v<typename Call::scalar_type, float>,
                "palimpsa::cuda: kernels calculate in float32; state, gates and prior are float");
  return check_shapes<Rule>(call);
}

/// A scan as kernels see it.
template <class Storage>
row_problem<Storage> problem_of(sequential const& how, scan_inputs<Storage, float> const& in, scan_shape const& s) {
  row_problem<Storage> p;
  p.shape = s;
  p.q = in.q, p.k = in.k, p.v = in.v;
  p.beta = in.beta, p.log_decay = in.log_decay, p.prior = in.prior;
  p.eta_in = in.initial_eta, p.evidence_in = in.initial_evidence;
  p.cu_seqlens = in.cu_seqlens;
  p.scale = static_cast<float>(in.scale);
  p.status = how.status;
  return p;
}

/// A step as kernels see it.
template <class Storage>
row_problem<Storage> problem_of(sequential const& how, step_arguments<Storage, float> const& a, scan_shape const& s) {
  row_problem<Storage> p;
  p.shape = s;
  p.q = a.q, p.k = a.k, p.v = a.v;
  p.beta = a.beta, p.log_decay = a.log_decay, p.prior = a.prior;
  p.eta_in = a.eta, p.evidence_in = a.evidence;
  p.eta_out = a.eta, p.evidence_out = a.evidence;
  p.slot_in = a.slot_in, p.slot_out = a.slot_out;
  p.pooled = true;
  p.out = a.out, p.out_variance = a.out_variance;
  p.scale = static_cast<float>(a.scale);
  p.status = how.status;
  return p;
}

/// Workspace taken from, and given back to, the stream: no synchronisation.
class stream_workspace {
 public:
  stream_workspace(std::size_t size, cudaStream_t stream) : size_(size), stream_(stream) {
    if (size > 0) expect(cudaMallocAsync(&memory_, size, stream), "cudaMallocAsync");
  }
  stream_workspace(stream_workspace const&) = delete;
  stream_workspace& operator=(stream_workspace const&) = delete;
  ~stream_workspace() {
    if (memory_ != nullptr) static_cast<void>(cudaFreeAsync(memory_, stream_));
  }
  operator workspace() const { return {static_cast<std::byte*>(memory_), size_}; }

 private:
  void* memory_ = nullptr;
  std::size_t size_;
  cudaStream_t stream_;
};

}  // namespace cuda::detail

inline namespace PALIMPSA_CUDA_ABI {

/// Bytes of device memory that `scan<Rule>(cuda::sequential, in, ...)` needs on the device of the tag's stream; often 0.
/// @throws argument_error  as scan does for shapes
template <any_rule Rule, stored Storage, class Scalar>
std::size_t scan_workspace(cuda::sequential const& how, scan_inputs<Storage, Scalar> const& in) {
  scan_shape const s = cuda::detail::checked_shape<Rule>(in);
  cuda::detail::device_of_stream const current(how.stream);
  return cuda::implementation_of<cuda::sequential, Rule>::template workspace_bytes<Rule>(
      how, cuda::detail::problem_of(how, in, s), current.device());
}

/// Runs the recurrence over whole sequences, token by token, on the stream of the tag. Every rule has this path.
///
/// As the CPU's scan, with all tensors in device memory. Asynchronous; no allocation, no synchronisation; may be captured in a graph.
/// cu_seqlens, gates and priors are not read by the host: a bad segment is taken as empty, and how.status (if given) is told.
/// @param scratch  at least scan_workspace<Rule>(how, in) bytes of device memory, not shared with work on another stream
/// @throws argument_error  naming tensor, expected and given, before anything is launched
/// @throws cuda::error     a CUDA call failed; its text is CUDA's
template <any_rule Rule, stored Storage, class Scalar>
void scan(cuda::sequential const& how, scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& out,
          workspace scratch) {
  scan_shape const s = cuda::detail::checked_shape<Rule>(in);
  check_shapes<Rule>(out, s);
  cuda::detail::device_of_stream const current(how.stream);
  auto problem = cuda::detail::problem_of(how, in, s);
  problem.out = out.out, problem.out_variance = out.out_variance;
  problem.eta_out = out.final_eta, problem.evidence_out = out.final_evidence;
  cuda::implementation_of<cuda::sequential, Rule>::template run<Rule>(how, problem, scratch, current.device());
}

/// The same, its workspace allocated and freed on the stream.
template <any_rule Rule, stored Storage, class Scalar>
void scan(cuda::sequential const& how, scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& out,
          allocate_t) {
  std::size_t const size = scan_workspace<Rule>(how, in);
  cuda::detail::device_of_stream const current(how.stream);
  cuda::detail::stream_workspace const scratch(size, how.stream);
  scan<Rule>(how, in, out, workspace(scratch));
}

/// Bytes of device memory that `step<Rule>(cuda::sequential, a, ...)` needs; often 0.
/// @throws argument_error  as step does for shapes
template <any_rule Rule, stored Storage, class Scalar>
std::size_t step_workspace(cuda::sequential const& how, step_arguments<Storage, Scalar> const& a) {
  scan_shape const s = cuda::detail::checked_shape<Rule>(a);
  cuda::detail::device_of_stream const current(how.stream);
  return cuda::implementation_of<cuda::sequential, Rule>::template workspace_bytes<Rule>(
      how, cuda::detail::problem_of(how, a, s), current.device());
}

/// Takes n tokens (usually one) for each of B rows, states in a pool, updated in place; state is read once and written once.
/// n tokens a call are bit for bit n calls of one; a step of no tokens launches nothing. Slots lie in device memory: a bad one makes its row inert (read) or leaves the
/// pool alone (write), and how.status (if given) is told; a slot written twice in a call is undefined, and check() finds it.
/// @param scratch  at least step_workspace<Rule>(how, a) bytes of device memory
/// @throws argument_error, cuda::error  as scan
template <any_rule Rule, stored Storage, class Scalar>
void step(cuda::sequential const& how, step_arguments<Storage, Scalar> const& a, workspace scratch) {
  scan_shape const s = cuda::detail::checked_shape<Rule>(a);
  cuda::detail::device_of_stream const current(how.stream);
  cuda::implementation_of<cuda::sequential, Rule>::template run<Rule>(how, cuda::detail::problem_of(how, a, s), scratch,
                                                                      current.device());
}

/// The same, its workspace allocated and freed on the stream.
template <any_rule Rule, stored Storage, class Scalar>
void step(cuda::sequential const& how, step_arguments<Storage, Scalar> const& a, allocate_t) {
  std::size_t const size = step_workspace<Rule>(how, a);
  cuda::detail::device_of_stream const current(how.stream);
  cuda::detail::stream_workspace const scratch(size, how.stream);
  step<Rule>(how, a, workspace(scratch));
}

}  // namespace PALIMPSA_CUDA_ABI
}  // namespace palimpsa
