#pragma once
/// @file
/// Checks a kernel in a test of your own from device pointers: io/check.hpp, with the tensors copied to the host first. Waits for
/// the stream. For debugging, as check() is.
///
///     // .cpp: in one call
///     auto const report = palimpsa::cuda::check_kernel<palimpsa::Palimpsa>({.stream = stream}, in, out);
///
///     // .cu: nvcc does not compile the CPU's rules, so the case is made there and held against the rule in a .cpp
///     palimpsa::io::case_file const given = palimpsa::cuda::case_of<palimpsa::Palimpsa>({.stream = stream}, in, out);
///     report = palimpsa::io::check_case<palimpsa::Palimpsa>(given);

#include <optional>
#include <string_view>
#include <type_traits>

#include "palimpsa/arguments.hpp"
#include "palimpsa/cuda/check.cuh"
#include "palimpsa/cuda/execution.cuh"
#include "palimpsa/cuda/machine/storage.cuh"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/case_of.hpp"
#if !defined(__CUDACC__)
#include "palimpsa/io/check.hpp"
#endif

namespace palimpsa::cuda {
namespace detail {

/// Views of device memory as views of host memory that lives as long as this.
template <class Storage>
struct host_call {
  template <class T>
  using copied = host_view<T>;

  copied<Storage> q, k, v;
  copied<float> beta, log_decay, prior, initial_eta, initial_evidence;
  host_list cu_seqlens;
  scan_inputs<Storage, float> in;

  host_call(scan_inputs<Storage, float> const& there, cudaStream_t stream)
      : q(there.q, stream),
        k(there.k, stream),
        v(there.v, stream),
        beta(there.beta, stream),
        log_decay(there.log_decay, stream),
        prior(there.prior, stream),
        initial_eta(there.initial_eta, stream),
        initial_evidence(there.initial_evidence, stream),
        cu_seqlens(there.cu_seqlens, stream),
        in{q, k, v, beta, log_decay, prior, initial_eta, initial_evidence, cu_seqlens, there.scale} {}
};

/// A tensor that a kernel wrote, as a case has it.
template <class T>
io::case_file::reals fetched(view<T> const& there, cudaStream_t stream) {
  host_view<std::remove_const_t<T>> const here(there, stream);
  return io::detail::dense(static_cast<view<std::remove_const_t<T> const>>(here));
}

}  // namespace detail

/// A call on device memory, and what a kernel wrote for it, as a case on the host. Waits for the stream.
/// @throws cuda::error  the work on the stream failed
template <any_rule Rule, class Storage>
io::case_file case_of(sequential const& how, scan_inputs<Storage, float> const& in, scan_outputs<Storage, float> const& yours,
                      scan_cotangents<Storage, float> const& cotangents = {}, scan_gradients<Storage, float> const& gradients = {}) {
  detail::device_of_stream const current(how.stream);
  detail::expect(cudaStreamSynchronize(how.stream), "cudaStreamSynchronize");
  detail::host_call<Storage> const here(in, how.stream);
  io::case_file result = io::case_of<Rule>(here.in, scan_outputs<Storage, float>{});
  auto const take = [&](auto const& there) { return detail::fetched(there, how.stream); };
  result.out = take(yours.out), result.out_variance = take(yours.out_variance);
  result.final_eta = take(yours.final_eta), result.final_evidence = take(yours.final_evidence);
  result.grad_out = take(cotangents.grad_out), result.grad_out_variance = take(cotangents.grad_out_variance);
  result.grad_final_eta = take(cotangents.grad_final_eta), result.grad_final_evidence = take(cotangents.grad_final_evidence);
  result.grad_q = take(gradients.grad_q), result.grad_k = take(gradients.grad_k), result.grad_v = take(gradients.grad_v);
  result.grad_beta = take(gradients.grad_beta), result.grad_log_decay = take(gradients.grad_log_decay);
  result.grad_prior = take(gradients.grad_prior), result.grad_initial_eta = take(gradients.grad_initial_eta);
  result.grad_initial_evidence = take(gradients.grad_initial_evidence);
  return result;
}

#if !defined(__CUDACC__)
/// Holds what a kernel wrote to device memory against the rule in float64 on the CPU. Waits for the stream.
/// @param tolerance relative error to hold everything to in place of the bounds; 0 = the bounds
/// @throws argument_error  for inputs that break the contract
/// @throws cuda::error     the work on the stream failed
template <any_rule Rule, class Storage>
io::case_report check_kernel(sequential const& how, scan_inputs<Storage, float> const& in, scan_outputs<Storage, float> const& yours,
                             double tolerance = 0) {
  return io::check_case<Rule>(case_of<Rule>(how, in, yours), tolerance);
}
#endif

}  // namespace palimpsa::cuda
