#pragma once
// From a rule to an engine. Included by points_*.cpp alone.

#include <type_traits>

#include "edge/engine.hpp"
#include "palimpsa/scan.hpp"
#include "palimpsa/scan_backward.hpp"

namespace palimpsa_test {

template <class Rule> constexpr axes axes_of() {
  namespace e = palimpsa::evidence;
  namespace g = palimpsa::gain;
  using evidence = typename Rule::evidence_type;
  using gain = typename Rule::gain_type;
  constexpr auto scope = Rule::forget_type::scope;
  return {Rule::keeps_diagonal ? keeps::diagonal : Rule::keeps_full ? keeps::full : keeps::nothing,
          std::is_same_v<evidence, e::full> ? sees::all : std::is_same_v<evidence, e::diagonal> ? sees::own : sees::nothing,
          std::is_same_v<gain, g::exact> ? moves::exact : std::is_same_v<gain, g::elementwise> ? moves::elementwise : moves::plain,
          scope == palimpsa::gate_scope::none  ? gates::none
          : scope == palimpsa::gate_scope::constant ? gates::constant
          : scope == palimpsa::gate_scope::head     ? gates::head
                                                    : gates::key,
          std::is_same_v<typename Rule::weighting_type, palimpsa::weighting::preweighted>};
}

/// A tensor of numbers of type S: a copy of dense numbers, or room for them.
template <class S> struct edge_tensor {
  std::vector<S> data;
  palimpsa::view<S> view;

  edge_tensor() = default;
  edge_tensor(std::initializer_list<std::int64_t> extents, numbers const& from) {
    for (double x : from) data.push_back(static_cast<S>(x));
    view = {data.data(), extents};
  }
  explicit edge_tensor(std::initializer_list<std::int64_t> extents) {
    std::int64_t n = 1;
    for (std::int64_t e : extents) n *= e;
    data.assign(static_cast<std::size_t>(n), S(-7e30));
    view = {data.data(), extents};
  }
  edge_tensor(edge_tensor&&) = default;
  edge_tensor& operator=(edge_tensor&&) = default;
  operator palimpsa::view<S const>() const { return view; }
  numbers values() const { return numbers(data.begin(), data.end()); }
};

/// A problem in the memory of a call.
template <class Rule, class S> struct edge_call {
  edge_tensor<S> q, k, v, beta, log_decay, prior, eta, J;
  palimpsa::scan_inputs<S> in;

  explicit edge_call(edge_problem const& p)
      : q({1, p.T, 1, p.K}, p.q), k({1, p.T, 1, p.K}, p.k), v({1, p.T, 1, p.V}, p.v), eta({1, 1, p.V, p.K}, p.eta) {
    beta = p.beta_per_channel ? edge_tensor<S>({1, p.T, 1, p.V}, p.beta) : edge_tensor<S>({1, p.T, 1}, p.beta);
    constexpr gates forget = axes_of<Rule>().forget;
    if (forget == gates::constant) log_decay = edge_tensor<S>({1}, p.log_decay);
    if (forget == gates::head) log_decay = edge_tensor<S>({1, p.T, 1}, p.log_decay);
    if (forget == gates::key) log_decay = edge_tensor<S>({1, p.T, 1, p.K}, p.log_decay);
    if (Rule::keeps_precision) prior = edge_tensor<S>({1}, p.prior), J = evidence(p, &p.J);
    in.q = q, in.k = k, in.v = v, in.beta = beta, in.log_decay = log_decay, in.prior = prior;
    in.initial_eta = eta, in.initial_evidence = J, in.scale = p.scale;
  }

  /// A state of evidence, filled or not; absent where there is none.
  static edge_tensor<S> evidence(edge_problem const& p, numbers const* from = nullptr) {
    if (!Rule::keeps_precision) return {};
    std::int64_t const rows = Rule::keeps_full ? p.K : p.V;
    return from ? edge_tensor<S>({1, 1, rows, p.K}, *from) : edge_tensor<S>({1, 1, rows, p.K});
  }
};

/// The scan by `how`.
template <class Rule, class S, class Exec> void forward_into(answers& a, edge_problem const& p, edge_call<Rule, S> const& c, Exec how) {
  edge_tensor<S> out({1, p.T, 1, p.V}), eta({1, 1, p.V, p.K}), variance, J = c.evidence(p);
  if (Rule::keeps_precision) variance = edge_tensor<S>({1, p.T, 1, p.V});
  palimpsa::scan<Rule>(how, c.in, palimpsa::scan_outputs<S>{out.view, variance.view, eta.view, J.view}, palimpsa::allocate);
  at(a, result::out) = out.values(), at(a, result::variance) = variance.values();
  at(a, result::eta) = eta.values(), at(a, result::J) = J.values();
}

/// The gradients, with two tokens between kept states.
template <class Rule, class S> void backward_into(answers& a, edge_problem const& p, edge_call<Rule, S> const& c) {
  edge_tensor<S> const d_out({1, p.T, 1, p.V}, p.d_out), d_final({1, 1, p.V, p.K}, p.d_eta), d_final_J = c.evidence(p, &p.d_J);
  edge_tensor<S> d_variance;
  if (Rule::keeps_diagonal) d_variance = edge_tensor<S>({1, p.T, 1, p.V}, p.d_variance);
  palimpsa::scan_cotangents<S> up;
  up.grad_out = d_out, up.grad_out_variance = d_variance, up.grad_final_eta = d_final, up.grad_final_evidence = d_final_J;
  edge_tensor<S> q({1, p.T, 1, p.K}), k({1, p.T, 1, p.K}), v({1, p.T, 1, p.V}), eta({1, 1, p.V, p.K}), J = c.evidence(p), prior, beta, gate;
  beta = p.beta_per_channel ? edge_tensor<S>({1, p.T, 1, p.V}) : edge_tensor<S>({1, p.T, 1});
  constexpr gates forget = axes_of<Rule>().forget;
  if (forget == gates::constant) gate = edge_tensor<S>({1});
  if (forget == gates::head) gate = edge_tensor<S>({1, p.T, 1});
  if (forget == gates::key) gate = edge_tensor<S>({1, p.T, 1, p.K});
  if (Rule::keeps_precision) prior = edge_tensor<S>({1});
  palimpsa::scan_backward<Rule>(palimpsa::checkpointed{2, 1}, c.in, up,
                                palimpsa::scan_gradients<S>{q.view, k.view, v.view, beta.view, gate.view, prior.view, eta.view, J.view},
                                palimpsa::allocate);
  at(a, result::d_q) = q.values(), at(a, result::d_k) = k.values(), at(a, result::d_v) = v.values();
  at(a, result::d_beta) = beta.values(), at(a, result::d_log_decay) = gate.values(), at(a, result::d_prior) = prior.values();
  at(a, result::d_eta) = eta.values(), at(a, result::d_J) = J.values();
}

template <class Rule, class S> answers run_sequential(edge_problem const& p) {
  answers a;
  edge_call<Rule, S> const c(p);
  forward_into(a, p, c, palimpsa::sequential{1});
  if (!p.d_out.empty()) backward_into(a, p, c);
  return a;
}

template <class Rule> engine engine_of(char const* name) {
  return {name, axes_of<Rule>(), &run_sequential<Rule, float>, &run_sequential<Rule, double>};
}

}  // namespace palimpsa_test
