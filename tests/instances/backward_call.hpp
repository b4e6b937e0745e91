#pragma once
// A problem with cotangents laid out in memory, as a call of scan_backward, with its gradients poisoned.

#include <cstddef>
#include <vector>

#include "instances/backward_oracle.hpp"
#include "instances/backward_rules.hpp"
#include "support/call.hpp"

namespace palimpsa_test {

/// What a backward call writes.
template <class Storage>
struct gradients {
  using scalar = typename palimpsa::storage<Storage>::scalar;
  tensor<Storage> q, k, v;
  tensor<scalar> beta, log_decay, prior, initial_eta, initial_evidence;

  palimpsa::scan_gradients<Storage> views() const {
    return {q.view(), k.view(), v.view(), beta.view(), log_decay.view(), prior.view(), initial_eta.view(), initial_evidence.view()};
  }
  bool gaps_untouched() const {
    return q.gaps_untouched() && k.gaps_untouched() && v.gaps_untouched() && beta.gaps_untouched() &&
           log_decay.gaps_untouched() && prior.gaps_untouched() && initial_eta.gaps_untouched() && initial_evidence.gaps_untouched();
  }
  bool still_poisoned() const {
    return q.still_poisoned() && k.still_poisoned() && v.still_poisoned() && beta.still_poisoned() &&
           log_decay.still_poisoned() && prior.still_poisoned() && initial_eta.still_poisoned() && initial_evidence.still_poisoned();
  }
  gradient_values values() const {
    return {q.values(), k.values(), v.values(), beta.values(), log_decay.values(), prior.values(), initial_eta.values(), initial_evidence.values()};
  }
};

template <class Storage>
bool same_bits(gradients<Storage> const& a, gradients<Storage> const& b) {
  return a.q.bits() == b.q.bits() && a.k.bits() == b.k.bits() && a.v.bits() == b.v.bits() && a.beta.bits() == b.beta.bits() &&
         a.log_decay.bits() == b.log_decay.bits() && a.prior.bits() == b.prior.bits() &&
         a.initial_eta.bits() == b.initial_eta.bits() && a.initial_evidence.bits() == b.initial_evidence.bits();
}

/// Random cotangents of everything the rule writes, as float keeps them.
inline cotangent_values draw_cotangents(problem const& p) {
  dice d(p.seed + 77);
  std::int64_t const heads = p.sequences() * p.sizes.HV;
  cotangent_values up;
  up.out = d.normals(static_cast<std::int64_t>(p.v.size()));
  up.final_eta = d.normals(heads * p.sizes.V * p.sizes.K);
  if (p.rule.keeps_diagonal()) up.out_variance = d.normals(static_cast<std::int64_t>(p.v.size()));
  if (p.rule.keeps_precision()) up.final_evidence = d.normals(heads * p.evidence_rows() * p.sizes.K);
  for (numbers* x : {&up.out, &up.out_variance, &up.final_eta, &up.final_evidence})
    for (double& y : *x) y = static_cast<double>(static_cast<float>(y));
  return up;
}

/// Cotangents of `out` as this storage rounds them.
template <class Storage>
cotangent_values rounded(cotangent_values up) {
  for (double& y : up.out) y = static_cast<double>(palimpsa::storage<Storage>::load(tensor<Storage>::from_double(y)));
  return up;
}

/// A problem and its cotangents in memory.
template <class Storage>
class backward_call {
 public:
  using scalar = typename palimpsa::storage<Storage>::scalar;

  backward_call(problem const& p, cotangent_values const& given, arrangement how = arrangement::contiguous)
      : forward(p, how), problem_(p) {
    recipe const& s = p.sizes;
    std::int64_t const N = p.sequences();
    extents const tokens{s.B, s.T, s.HV, s.V}, state{N, s.HV, s.V, s.K}, evidence{N, s.HV, p.evidence_rows(), s.K};
    auto const lay = [how](auto& t, extents const& e, numbers const& x) {
      using T = std::remove_reference_t<decltype(t)>;
      if (!x.empty() || product(e) == 0) t = T(e, how, x);
    };
    lay(out, tokens, given.out);
    lay(final_eta, state, given.final_eta);
    if (p.rule.keeps_diagonal()) lay(out_variance, tokens, given.out_variance);
    if (p.rule.keeps_precision()) lay(final_evidence, evidence, given.final_evidence);
    up.grad_out = out, up.grad_out_variance = out_variance;
    up.grad_final_eta = final_eta, up.grad_final_evidence = final_evidence;
  }

  /// Poisoned gradients of everything the call read, and of the initial states.
  gradients<Storage> outputs(arrangement how = arrangement::contiguous) const {
    recipe const& s = problem_.sizes;
    std::int64_t const N = problem_.sequences();
    auto const like = [](auto const& view) { return extents(view.extent, view.extent + view.rank); };
    auto const& in = forward.in;
    gradients<Storage> g;
    g.q = {like(in.q), how};
    g.k = {like(in.k), how};
    g.v = {like(in.v), how};
    if (in.beta.present()) g.beta = {like(in.beta), how};
    if (in.log_decay.present()) g.log_decay = {like(in.log_decay), how};
    if (in.prior.present()) g.prior = {like(in.prior), how};
    g.initial_eta = {{N, s.HV, s.V, s.K}, how};
    if (problem_.rule.keeps_precision()) g.initial_evidence = {{N, s.HV, problem_.evidence_rows(), s.K}, how};
    return g;
  }

  /// Runs it into `g`.
  void run(palimpsa::scan_gradients<Storage> const& g, palimpsa::checkpointed how) const {
    auto scratch = scratch_of(backward_workspace(problem_.rule, how, forward.in));
    run_backward(problem_.rule, how, forward.in, up, g, palimpsa::workspace(scratch));
  }

  /// Runs it.
  gradients<Storage> run(palimpsa::checkpointed how = {4, 1}, arrangement with = arrangement::contiguous) const {
    gradients<Storage> g = outputs(with);
    run(g.views(), how);
    return g;
  }

  call<Storage> forward;
  tensor<Storage> out;
  tensor<scalar> out_variance, final_eta, final_evidence;
  palimpsa::scan_cotangents<Storage> up;

 private:
  problem problem_;
};

/// The condition of the worst system a full memory solves, and 1 for other rules.
inline double condition_of(problem const& p) {
  double const condition = p.rule.keeps_full() ? oracle(p).condition : 1;
  return condition > 50 ? condition : 1;
}

/// CHECKs all gradients against the right ones. `storage_error` is the rounding of those of q, k, v alone.
template <class Storage>
void check_right(gradients<Storage> const& g, gradient_values const& right, problem const& p, double storage_error = 0) {
  double const bound = arithmetic_bound<typename gradients<Storage>::scalar>(p.longest(), condition_of(p));
  auto const x = g.values();
  PALIMPSA_TEST_CLOSE("grad_q", x.q, right.q, bound + storage_error);
  PALIMPSA_TEST_CLOSE("grad_k", x.k, right.k, bound + storage_error);
  PALIMPSA_TEST_CLOSE("grad_v", x.v, right.v, bound + storage_error);
  PALIMPSA_TEST_CLOSE("grad_beta", x.beta, right.beta, bound);
  PALIMPSA_TEST_CLOSE("grad_log_decay", x.log_decay, right.log_decay, bound);
  PALIMPSA_TEST_CLOSE("grad_prior", x.prior, right.prior, bound);
  PALIMPSA_TEST_CLOSE("grad_initial_eta", x.initial_eta, right.initial_eta, bound);
  PALIMPSA_TEST_CLOSE("grad_initial_evidence", x.initial_evidence, right.initial_evidence, bound);
  CHECK(g.gaps_untouched());
}

}  // namespace palimpsa_test
