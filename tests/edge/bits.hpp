#pragma once
// Promises of equal bits, for one rule in one type: a sequence cut anywhere, n tokens in n calls, and n in fewer, are one scan. Compiled
// for this machine's vector units and with products and sums contracted at the compiler's will: what is promised must not rest on it.

#include <cstring>

#include "edge/edge_problem.hpp"
#include "edge/engine_of.hpp"
#include "palimpsa/step.hpp"
#include "support/catch.hpp"

namespace palimpsa_test {

/// What a run leaves, as bits.
template <class S> struct edge_run {
  edge_tensor<S> out, variance, eta, J;

  template <class Rule> static edge_run of(edge_problem const& p) {
    edge_run r;
    r.out = edge_tensor<S>({1, p.T, 1, p.V});
    if (Rule::keeps_precision) r.variance = edge_tensor<S>({1, p.T, 1, p.V});
    r.eta = edge_tensor<S>({1, 1, p.V, p.K}, p.eta), r.J = edge_call<Rule, S>::evidence(p, &p.J);
    return r;
  }
  bool same(edge_run const& other, std::string& where) const {
    auto const compare = [&](char const* name, std::vector<S> const& a, std::vector<S> const& b) {
      std::size_t different = 0;
      for (std::size_t i = 0; i < a.size(); ++i) different += std::memcmp(&a[i], &b[i], sizeof(S)) != 0;
      if (different) where += std::string(" ") + name + " " + std::to_string(different) + " of " + std::to_string(a.size());
    };
    compare("out", out.data, other.out.data), compare("out_variance", variance.data, other.variance.data);
    compare("eta", eta.data, other.eta.data), compare("J", J.data, other.J.data);
    return where.empty();
  }
};

/// Tokens [first, first + n) of a tensor [1, T, ...].
template <class T> palimpsa::view<T> tokens_in(palimpsa::view<T> v, std::int64_t first, std::int64_t n) {
  if (v.rank < 2) return v;  // absent, or a constant gate
  v.data += first * v.stride[1];
  v.extent[1] = n;
  return v;
}

inline edge_problem draw_bits(axes r, std::int64_t T, std::int64_t K, std::int64_t V, bool per_channel, std::uint64_t n) {
  dice d(seed_of(n));
  edge_problem p;
  p.T = T, p.K = K, p.V = V, p.scale = 0.7, p.beta_per_channel = per_channel && r.memory != keeps::full;
  p.q = d.normals(T * K), p.k = d.normals(T * K), p.v = d.normals(T * V), p.eta = d.normals(V * K);
  for (double& x : p.k) x /= std::sqrt(static_cast<double>(K));
  p.beta = d.uniforms(T * (p.beta_per_channel ? V : 1), 0, 1);
  std::int64_t const gates_given = r.forget == gates::none ? 0 : r.forget == gates::constant ? 1 : r.forget == gates::head ? T : T * K;
  p.log_decay = d.uniforms(gates_given, -2, 0);
  if (r.memory != keeps::nothing) p.prior = {d.uniform(0.5, 2)};
  if (r.memory == keeps::diagonal) p.J = d.uniforms(V * K, 0, 2);
  if (r.memory == keeps::full) {
    p.J.assign(static_cast<std::size_t>(K * K), 0);
    for (std::int64_t j = 0; j < K; ++j) p.J[static_cast<std::size_t>(j * (K + 1))] = d.uniform(0, 2);
  }
  return p;
}

/// The sequence in scans of these lengths, the state handed over in place.
template <class Rule, class S> edge_run<S> in_scans(edge_problem const& p, std::vector<std::int64_t> const& lengths) {
  edge_call<Rule, S> const c(p);
  edge_run<S> r = edge_run<S>::template of<Rule>(p);
  std::int64_t first = 0;
  for (std::int64_t n : lengths) {
    palimpsa::scan_inputs<S> in = c.in;
    in.q = tokens_in(in.q, first, n), in.k = tokens_in(in.k, first, n), in.v = tokens_in(in.v, first, n);
    in.beta = tokens_in(in.beta, first, n), in.log_decay = tokens_in(in.log_decay, first, n);
    in.initial_eta = r.eta, in.initial_evidence = r.J;
    palimpsa::scan<Rule>(palimpsa::sequential{1}, in,
                         palimpsa::scan_outputs<S>{tokens_in(r.out.view, first, n), tokens_in(r.variance.view, first, n), r.eta.view, r.J.view},
                         palimpsa::allocate);
    first += n;
  }
  return r;
}

/// The same in steps.
template <class Rule, class S> edge_run<S> in_steps(edge_problem const& p, std::vector<std::int64_t> const& lengths) {
  edge_call<Rule, S> const c(p);
  edge_run<S> r = edge_run<S>::template of<Rule>(p);
  std::int64_t first = 0;
  for (std::int64_t n : lengths) {
    palimpsa::step_arguments<S> a;
    a.q = tokens_in(c.in.q, first, n), a.k = tokens_in(c.in.k, first, n), a.v = tokens_in(c.in.v, first, n);
    a.beta = tokens_in(c.in.beta, first, n), a.log_decay = tokens_in(c.in.log_decay, first, n), a.prior = c.in.prior;
    a.eta = r.eta.view, a.evidence = r.J.view, a.scale = p.scale;
    a.out = tokens_in(r.out.view, first, n), a.out_variance = tokens_in(r.variance.view, first, n);
    palimpsa::step<Rule>(palimpsa::sequential{1}, a, palimpsa::allocate);
    first += n;
  }
  return r;
}

/// CHECKs every promise over sizes around packs, tiles, and those where a compiler was seen to contract two loops differently.
template <class Rule, class S> void hold_bits(char const* name) {
  std::int64_t const sizes[][2] = {{1, 1}, {3, 5}, {9, 33}, {33, 17}, {104, 9}, {140, 3}, {200, 20}};
  for (auto const& size : sizes)
    for (bool per_channel : {false, true}) {
      constexpr axes r = axes_of<Rule>();
      std::int64_t const T = size[0] > 100 && r.memory == keeps::full ? 5 : 35;
      edge_problem const p = draw_bits(r, T, size[0], size[1], per_channel, static_cast<std::uint64_t>(size[0]));
      edge_run<S> const whole = in_scans<Rule, S>(p, {T});
      std::vector<std::int64_t> const singles(static_cast<std::size_t>(T), 1);
      std::string cut, one, few;
      bool const as_cut = whole.same(in_scans<Rule, S>(p, {2, 0, T - 3, 1}), cut);
      bool const as_steps = whole.same(in_steps<Rule, S>(p, singles), one), as_few = whole.same(in_steps<Rule, S>(p, {T - 4, 4}), few);
      INFO(name << (sizeof(S) == 4 ? " in float" : " in double") << ", K " << p.K << " V " << p.V
                << (p.beta_per_channel ? ", beta per channel" : ""));
      INFO("differs from the whole: cut" << cut << "; one token a call" << one << "; few calls" << few);
      CHECK((as_cut && as_steps && as_few));
    }
}

/// One write with every way to forget and to weight.
template <class Rule, class S> void hold_bits_of_write(char const* name) {
  using namespace palimpsa;
  auto const weighted = [&]<class R>(std::type_identity<R>) {
    hold_bits<R, S>(name);
    hold_bits<with_weighting<R, weighting::preweighted>, S>(name);
  };
  weighted(std::type_identity<Rule>{});
  weighted(std::type_identity<with_forget<Rule, forget::none>>{});
  weighted(std::type_identity<with_forget<Rule, forget::constant>>{});
  if constexpr (!Rule::keeps_full) weighted(std::type_identity<with_forget<Rule, forget::per_key>>{});
}

}  // namespace palimpsa_test
