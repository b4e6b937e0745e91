#pragma once
// The kernels' host twin behind the names of rules. Instantiated in twin_*.cpp, so that the tests compile in seconds.

#include <vector>

#include "palimpsa/arguments.hpp"
#include "palimpsa/cuda/sequential/row_twin.hpp"
#include "support/problem.hpp"

namespace palimpsa_test {

/// Whether the twin of a rule is compiled for Storage: every write with one gate a head in float; the other axes are orthogonal to the
/// write in the code of the kernels, so each of their values stands beside some writes only (a unit costs the compiler 10 s as it is).
template <class Storage>
constexpr bool has_twin(rule_name r) {
  bool const plain = !r.preweighted && r.forget == gates::head, mamba2 = r.write == kind::mamba2, palimpsa = r.write == kind::palimpsa;
  if (sizeof(Storage) == 2) return plain && (mamba2 || palimpsa || r.write == kind::mesa_net);
  if (r.preweighted) return r.forget == gates::head && (palimpsa || r.write == kind::mesa_net);
  switch (r.forget) {
    case gates::head: return true;
    case gates::key: return r.write != kind::mesa_net && r.write != kind::implicit_delta;
    case gates::none: return r.write == kind::delta || r.write == kind::mesa_net;
    case gates::constant: return mamba2 || palimpsa;
  }
  return false;
}

/// All of them.
template <class Storage>
std::vector<rule_name> every_twin() {
  std::vector<rule_name> rules;
  for (kind write : every_kind)
    for (gates forget : {gates::head, gates::key, gates::none, gates::constant})
      for (bool preweighted : {false, true})
        if (rule_name const r{write, forget, preweighted}; has_twin<Storage>(r)) rules.push_back(r);
  return rules;
}

/// palimpsa::cuda::run_twin for the rules of one write; defined in twin_*.cpp for float, Eigen::bfloat16, Eigen::half.
template <kind Write, class Storage>
void run_twin_of(rule_name rule, palimpsa::cuda::row_problem<Storage> const& p, palimpsa::cuda::twin_solver solver);

/// palimpsa::cuda::run_twin.
template <class Storage>
void run_twin(rule_name rule, palimpsa::cuda::row_problem<Storage> const& p, palimpsa::cuda::twin_solver solver = {}) {
  switch (rule.write) {
    case kind::mamba2: return run_twin_of<kind::mamba2>(rule, p, solver);
    case kind::longhorn: return run_twin_of<kind::longhorn>(rule, p, solver);
    case kind::delta: return run_twin_of<kind::delta>(rule, p, solver);
    case kind::implicit_delta: return run_twin_of<kind::implicit_delta>(rule, p, solver);
    case kind::palimpsa: return run_twin_of<kind::palimpsa>(rule, p, solver);
    case kind::diagonal_kalman: return run_twin_of<kind::diagonal_kalman>(rule, p, solver);
    case kind::mesa_net: return run_twin_of<kind::mesa_net>(rule, p, solver);
  }
}

/// A scan as kernels see it.
template <class Storage>
palimpsa::cuda::row_problem<Storage> kernel_problem(palimpsa::scan_inputs<Storage> const& in, palimpsa::scan_outputs<Storage> const& out,
                                                    palimpsa::scan_shape const& s, unsigned* status) {
  palimpsa::cuda::row_problem<Storage> p;
  p.shape = s;
  p.q = in.q, p.k = in.k, p.v = in.v, p.beta = in.beta, p.log_decay = in.log_decay, p.prior = in.prior;
  p.eta_in = in.initial_eta, p.evidence_in = in.initial_evidence;
  p.eta_out = out.final_eta, p.evidence_out = out.final_evidence;
  p.cu_seqlens = in.cu_seqlens;
  p.out = out.out, p.out_variance = out.out_variance;
  p.scale = static_cast<float>(in.scale);
  p.status = status;
  return p;
}

/// A step as kernels see it.
template <class Storage>
palimpsa::cuda::row_problem<Storage> kernel_problem(palimpsa::step_arguments<Storage> const& a, palimpsa::scan_shape const& s,
                                                    unsigned* status) {
  palimpsa::cuda::row_problem<Storage> p;
  p.shape = s;
  p.q = a.q, p.k = a.k, p.v = a.v, p.beta = a.beta, p.log_decay = a.log_decay, p.prior = a.prior;
  p.eta_in = a.eta, p.evidence_in = a.evidence, p.eta_out = a.eta, p.evidence_out = a.evidence;
  p.slot_in = a.slot_in, p.slot_out = a.slot_out, p.pooled = true;
  p.out = a.out, p.out_variance = a.out_variance;
  p.scale = static_cast<float>(a.scale);
  p.status = status;
  return p;
}

}  // namespace palimpsa_test
