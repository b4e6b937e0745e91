#pragma once
// Runs a case on the GPU: the tensors of the CPU's call, mirrored, through the same entry points on another tag. Kernels are those of
// cuda/units; nothing here needs nvcc.

#include <string>

#include "palimpsa/cuda/execution.cuh"
#include "palimpsa/error.hpp"
#include "palimpsa/io/case_call.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/case_steps.hpp"
#include "palimpsa/io/run_options.hpp"
#include "palimpsa/validate_values.hpp"
#include "units/gpu_calls.hpp"
#include "verify/gpu_mirror.hpp"

namespace verify {

/// A scan of host tensors on the GPU; waits for it.
template <class Storage>
void scan_mirrored(palimpsa_units::gpu_calls<Storage> const& calls, palimpsa::scan_inputs<Storage> const& in,
                   palimpsa::scan_outputs<Storage> const& out) {
  mirror const q(in.q), k(in.k), v(in.v);
  mirror const beta(in.beta), log_decay(in.log_decay), prior(in.prior), eta(in.initial_eta), evidence(in.initial_evidence);
  list_mirror const boundaries(in.cu_seqlens);
  mirror const read(out.out);
  mirror const variance(out.out_variance), final_eta(out.final_eta), final_evidence(out.final_evidence);
  palimpsa::scan_inputs<Storage> device_in{q.device(),         k.device(),     v.device(),   beta.device(),
                                           log_decay.device(), prior.device(), eta.device(), evidence.device(),
                                           boundaries.device(), in.scale};
  palimpsa::scan_outputs<Storage> const device_out{read.device(), variance.device(), final_eta.device(), final_evidence.device()};
  calls.scan_allocating({}, device_in, device_out);
  palimpsa::cuda::detail::expect(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  read.download(), variance.download(), final_eta.download(), final_evidence.download();
}

/// A step of host tensors on the GPU; waits for it.
template <class Storage>
void step_mirrored(palimpsa_units::gpu_calls<Storage> const& calls, palimpsa::step_arguments<Storage> const& a) {
  mirror const q(a.q), k(a.k), v(a.v);
  mirror const beta(a.beta), log_decay(a.log_decay), prior(a.prior);
  mirror const eta(a.eta), evidence(a.evidence), variance(a.out_variance);
  mirror const read(a.out);
  list_mirror const slot_in(a.slot_in), slot_out(a.slot_out);
  palimpsa::step_arguments<Storage> const device{q.device(),        k.device(),        v.device(),     beta.device(),
                                                 log_decay.device(), prior.device(),   eta.device(),   evidence.device(),
                                                 slot_in.device(),  slot_out.device(), read.device(),  variance.device(),
                                                 a.scale};
  calls.step_allocating({}, device);
  palimpsa::cuda::detail::expect(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  eta.download(), evidence.download(), read.download(), variance.download();
}

namespace detail {

template <palimpsa::any_rule Rule, class Storage>
palimpsa::io::named_tensors run_on_gpu_in(palimpsa::io::case_file const& given, palimpsa::io::run_options const& how) {
  std::string const name = palimpsa_units::name_of<Rule>();
  palimpsa_units::gpu_calls<Storage> const* const calls = palimpsa_units::find<Storage>(name);
  if (calls == nullptr)
    throw palimpsa::unsupported_error("this program was built without kernels for " + name + " in " + palimpsa::storage<Storage>::name);
  palimpsa::io::case_inputs<Storage> inputs(given);
  auto const in = inputs.arguments();
  palimpsa::scan_shape const s = palimpsa::check_shapes<Rule>(in);
  palimpsa::check_values<Rule>(in, s);
  auto outputs = palimpsa::io::outputs_for<Rule, Storage>(given, s);
  if (how.path == palimpsa::io::scan_path::step)
    palimpsa::io::run_steps(in, s, outputs,
                            [&](palimpsa::step_arguments<Storage> const& a) { step_mirrored(*calls, a); });
  else
    scan_mirrored(*calls, in, outputs.arguments());
  palimpsa::io::named_tensors results;
  outputs.add_to(results);
  return results;
}

}  // namespace detail

/// Runs a case by a rule on the GPU, forward.
/// @throws unsupported_error for a path or a type that the GPU does not have
template <palimpsa::any_rule Rule>
palimpsa::io::named_tensors run_on_gpu(palimpsa::io::case_file const& given, palimpsa::io::run_options const& how) {
  using palimpsa::io::dtype;
  if (how.path == palimpsa::io::scan_path::chunked)
    throw palimpsa::unsupported_error("no chunked form on the GPU: it has sequential and step");
  if (how.type == dtype::f32) return detail::run_on_gpu_in<Rule, float>(given, how);
  if (how.type == dtype::bf16) return detail::run_on_gpu_in<Rule, __nv_bfloat16>(given, how);
  if (how.type == dtype::f16) return detail::run_on_gpu_in<Rule, __half>(given, how);
  throw palimpsa::unsupported_error("the GPU calculates in float32: ask for --dtype f32, bf16 or f16");
}

}  // namespace verify
