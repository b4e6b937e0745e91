#pragma once
// Calls on the GPU, as the tests make them: workspace of exactly the size that was asked for, poisoned; no error left behind.

#include "cuda/device_memory.hpp"
#include "cuda/gpu_rules.hpp"
#include "cuda/pool.hpp"

namespace palimpsa_test {

template <class Storage>
using gpu_inputs = laid_out<on_device, Storage>;
template <class Storage>
using gpu_outputs = written<on_device, Storage>;
template <class Storage>
using gpu_pool = pooled<on_device, Storage>;

/// Waits for everything, and CHECKs that no error is pending.
inline void finish() {
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
}

/// A scan; returns the status word.
template <class Storage>
unsigned gpu_scan(rule_name rule, palimpsa::scan_inputs<Storage> const& in, palimpsa::scan_outputs<Storage> const& out) {
  gpu_calls<Storage> const& calls = gpu_calls_of<Storage>(rule);
  status_word const status;
  gpu how;
  how.status = status.data();
  device_bytes const scratch(calls.scan_workspace(how, in));
  calls.scan(how, in, out, scratch);
  finish();
  return status.read();
}
template <class Storage>
unsigned gpu_scan(rule_name rule, gpu_inputs<Storage> const& in, gpu_outputs<Storage> const& out) {
  return gpu_scan(rule, in.inputs(), out.outputs());
}

/// A step; returns the status word.
template <class Storage>
unsigned gpu_step(rule_name rule, palimpsa::step_arguments<Storage> const& a) {
  gpu_calls<Storage> const& calls = gpu_calls_of<Storage>(rule);
  status_word const status;
  gpu how;
  how.status = status.data();
  device_bytes const scratch(calls.step_workspace(how, a));
  calls.step(how, a, scratch);
  finish();
  return status.read();
}

/// Tokens [first, first + count) of batch rows [row, row + rows) of a [B,T,...] view.
template <class T>
palimpsa::view<T> cut(palimpsa::view<T> v, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count) {
  if (!v.present()) return v;
  v.data = v.at(row, first);
  v.extent[0] = rows, v.extent[1] = count;
  return v;
}

/// A step over a part of a scan's tokens, on a pool.
template <class Storage>
palimpsa::step_arguments<Storage> step_of(rule_name rule, palimpsa::scan_inputs<Storage> const& in, palimpsa::scan_outputs<Storage> const& out,
                                          std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count) {
  palimpsa::step_arguments<Storage> a;
  a.q = cut(in.q, row, rows, first, count), a.k = cut(in.k, row, rows, first, count), a.v = cut(in.v, row, rows, first, count);
  a.beta = cut(in.beta, row, rows, first, count), a.prior = in.prior;
  a.log_decay = rule.forget == gates::constant ? in.log_decay : cut(in.log_decay, row, rows, first, count);
  a.out = cut(out.out, row, rows, first, count), a.out_variance = cut(out.out_variance, row, rows, first, count);
  a.scale = in.scale;
  return a;
}

/// The states of a problem as a pool that steps move along; final states are what is in it at the end.
template <class Storage>
struct moving_states {
  explicit moving_states(problem const& p, layout how = layout::aligned) {
    recipe const& s = p.sizes;
    std::int64_t const N = p.sequences();
    auto const or_zero = [](numbers const& x, std::int64_t n) { return x.empty() ? numbers(static_cast<std::size_t>(n)) : x; };
    eta = {{N, s.HV, s.V, s.K}, how, or_zero(p.initial_eta, N * s.HV * s.V * s.K)};
    std::int64_t const rows = p.evidence_rows();
    if (p.rule.keeps_precision()) evidence = {{N, s.HV, rows, s.K}, how, or_zero(p.initial_evidence, N * s.HV * rows * s.K)};
  }
  on_device<float> eta, evidence;
};

/// Runs a problem by steps of `count` tokens, reading the very tensors a scan reads. Packed sequences one after another.
template <class Storage>
unsigned gpu_steps(problem const& p, gpu_inputs<Storage> const& in, gpu_outputs<Storage> const& out, moving_states<Storage> const& states,
                   std::int64_t count) {
  unsigned status = 0;
  auto const run = [&](std::int64_t row, std::int64_t rows, std::int64_t slot, std::int64_t first, std::int64_t end) {
    index_list<on_device> const slots({slot}, index_width::int64);
    for (std::int64_t t = first; t < end; t += count) {
      palimpsa::step_arguments<Storage> a =
          step_of(p.rule, in.inputs(), out.outputs(), row, rows, t, (std::min)(count, end - t));
      a.eta = states.eta.view(), a.evidence = states.evidence.view();
      if (rows == 1) a.slot_in = slots;
      status |= gpu_step(p.rule, a);
    }
  };
  if (p.cu_seqlens.empty()) {
    run(0, p.sizes.B, 0, 0, p.sizes.B == 0 ? 0 : p.sizes.T);
  } else {
    for (std::size_t n = 0; n + 1 < p.cu_seqlens.size(); ++n)
      run(0, 1, static_cast<std::int64_t>(n), p.cu_seqlens[n], p.cu_seqlens[n + 1]);
  }
  return status;
}

/// Calls f(Storage) for every storage type.
template <class F>
void each_storage(F f) {
  f(float{});
  f(__nv_bfloat16{});
  f(__half{});
}

}  // namespace palimpsa_test
