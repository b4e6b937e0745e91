#pragma once
/// @file
/// The contract, checked before anything is written. `check_shapes` needs only what the host sees (also for device tensors);
/// `check_values` (validate_values.hpp) reads them, so it is for tensors in host memory.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>

#include "palimpsa/arguments.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/error.hpp"
#include "palimpsa/rule.hpp"
#include "palimpsa/shape.hpp"
#include "palimpsa/validate_tensor.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// The largest K and V of the contract.
inline constexpr std::int64_t max_channels = 256;

namespace detail {

inline void require_channels(char const* name, std::int64_t channels) {
  if (channels < 1 || channels > max_channels)
    throw argument_error(name, "a last axis from 1 to " + std::to_string(max_channels), std::to_string(channels));
}

/// A sentence for who hands over [B,H,T,...]: `other` has the token and head axes of `one` the other way round; otherwise nothing.
template <class T, class U>
std::string head_major_hint(char const* one_name, view<T> const& one, char const* other_name, view<U> const& other) {
  if (one.rank < 3 || other.rank < 3 || one.extent[1] == one.extent[2]) return "";
  if (one.extent[1] != other.extent[2] || one.extent[2] != other.extent[1]) return "";
  return std::string(" (") + one_name + " and " + other_name +
         " have tokens and heads exchanged: every tensor is [B,T,H,...], none is head-major, [B,H,T,...]; strides may be any)";
}

/// No product of a call's sizes wraps: its tokens, and its states, are fewer than any memory has bytes.
inline void require_sizes(scan_shape const& s) {
  auto const require = [](char const* what, std::initializer_list<std::int64_t> sizes) {
    std::int64_t all = 1;
    for (std::int64_t size : sizes) all = checked::product(all, size);
    if (all > checked::most) throw argument_error("sizes", std::string(what) + " of at most 2^56", extents_text(sizes));
  };
  std::int64_t const widest = (std::max)(s.keys, s.values);
  require("B*T*HV*max(K,V)", {s.batch, s.tokens, s.value_heads, widest});
  require("N*HV*K*max(K,V)", {s.sequences, s.value_heads, s.keys, widest});
}

/// q, k, v and the sizes they fix.
template <class Storage>
scan_shape shape_of_tokens(view<Storage const> q, view<Storage const> k, view<Storage const> v) {
  if (q.rank != 4) throw argument_error("q", "[B,T,HK,K]", shape_text(q));
  if (v.rank != 4) throw argument_error("v", "[B,T,HV,V]", shape_text(v));
  scan_shape s;
  s.batch = s.sequences = q.extent[0];
  s.tokens = q.extent[1];
  s.key_heads = q.extent[2];
  s.keys = q.extent[3];
  s.value_heads = v.extent[2];
  s.values = v.extent[3];
  if (s.batch < 0 || s.tokens < 0) throw argument_error("q", "sizes of at least 0", shape_text(q));
  require_channels("q", s.keys);
  require_channels("v", s.values);
  if (s.key_heads < 1) throw argument_error("q", "at least one key head", shape_text(q));
  std::string const hint = head_major_hint("q", q, "v", v), k_hint = head_major_hint("q", q, "k", k);
  if (s.value_heads < 1 || s.value_heads % s.key_heads != 0)
    throw argument_error("v", "a multiple of " + std::to_string(s.key_heads) + " (the key heads) value heads",
                         std::to_string(s.value_heads) + (hint.empty() ? k_hint : hint));
  require("q", q, "[B,T,HK,K]", {s.batch, s.tokens, s.key_heads, s.keys});
  require("k", k, "[B,T,HK,K]", {s.batch, s.tokens, s.key_heads, s.keys}, k_hint);
  require("v", v, "[B,T,HV,V]", {s.batch, s.tokens, s.value_heads, s.values}, hint);
  require_sizes(s);
  return s;
}

/// β, a head or a channel; `v` says whether tokens and heads are exchanged.
template <class Rule, class T, class U>
void require_beta(char const* name, view<T> const& beta, view<U> const& v, scan_shape const& s) {
  if (!beta.present()) return;
  std::string const hint = head_major_hint("v", v, name, beta);
  if (beta.rank == 3 || (Rule::keeps_full && (beta.rank != 4 || per_channel(beta))))
    require(name, beta, "[B,T,HV]", {s.batch, s.tokens, s.value_heads}, hint);
  else
    require(name, beta, "[B,T,HV] or [B,T,HV,V]", {s.batch, s.tokens, s.value_heads, s.values}, hint);
}

template <class Rule, class T, class U>
void require_gate(char const* name, view<T> const& gate, view<U> const& v, scan_shape const& s) {
  constexpr gate_scope scope = Rule::forget_type::scope;
  if (!gate.present()) return;
  std::string const hint = head_major_hint("v", v, name, gate);
  if constexpr (scope == gate_scope::none)
    throw argument_error(name, "absent, since this rule forgets nothing", shape_text(gate));
  else if constexpr (scope == gate_scope::constant)
    require(name, gate, "[HV]", {s.value_heads});
  else if constexpr (scope == gate_scope::head)
    require(name, gate, "[B,T,HV]", {s.batch, s.tokens, s.value_heads}, hint);
  else
    require(name, gate, "[B,T,HV,K]", {s.batch, s.tokens, s.value_heads, s.keys}, hint);
}

template <class Rule, class T>
void require_prior(char const* name, view<T> const& prior, scan_shape const& s) {
  if constexpr (!Rule::keeps_precision) {
    if (prior.present()) throw argument_error(name, "absent, since this rule keeps no precision", shape_text(prior));
  } else if constexpr (Rule::keeps_full) {
    if (prior.rank == 2)
      require(name, prior, "[HV,K]", {s.value_heads, s.keys});
    else
      require(name, prior, "[HV] or [HV,K]", {s.value_heads});
  } else {
    require(name, prior, "[HV]", {s.value_heads});
  }
}

/// η or its like, if present.
template <class T>
void require_eta(char const* name, view<T> const& eta, scan_shape const& s, std::int64_t states,
                 char const* symbols = "[N,HV,V,K]") {
  if (!eta.present()) return;
  if constexpr (std::is_const_v<T>)
    require(name, eta, symbols, {states, s.value_heads, s.values, s.keys});
  else
    require_writable(name, eta, symbols, {states, s.value_heads, s.values, s.keys});
}

/// J or its like, if present; refused where the rule keeps none.
template <class Rule, class T>
void require_evidence(char const* name, view<T> const& evidence, scan_shape const& s, std::int64_t states,
                      char const* symbols = Rule::keeps_full ? "[N,HV,K,K]" : "[N,HV,V,K]") {
  if (!evidence.present()) return;
  if constexpr (!Rule::keeps_precision) {
    throw argument_error(name, "absent, since this rule keeps no precision", shape_text(evidence));
  } else {
    std::int64_t const rows = Rule::keeps_full ? s.keys : s.values;
    if constexpr (std::is_const_v<T>)
      require(name, evidence, symbols, {states, s.value_heads, rows, s.keys});
    else
      require_writable(name, evidence, symbols, {states, s.value_heads, rows, s.keys});
  }
}

template <class Rule, class T>
void require_variance(char const* name, view<T> const& variance, scan_shape const& s) {
  if (!variance.present()) return;
  if constexpr (!Rule::keeps_precision)
    throw argument_error(name, "absent, since this rule keeps no precision", shape_text(variance));
  else if constexpr (std::is_const_v<T>)
    require(name, variance, "[B,T,HV,V]", {s.batch, s.tokens, s.value_heads, s.values});
  else
    require_writable(name, variance, "[B,T,HV,V]", {s.batch, s.tokens, s.value_heads, s.values});
}

/// scale, finite in the type of the arithmetic.
template <class Scalar>
void require_scale(double scale) {
  constexpr auto most = static_cast<double>((std::numeric_limits<Scalar>::max)());
  if (!(scale >= -most && scale <= most)) throw argument_error("scale", "a finite number", number_text(scale));
}

}  // namespace detail

/// What the compiler could not tell of policies whose members are no constant expressions, looked at once a rule: that one which says it
/// does not read the sum over the keys does not.
/// @throws unsupported_error
template <any_rule Rule>
void check_policies() {
  using gain = typename Rule::gain_type;
  using evidence = typename Rule::evidence_type;
  if constexpr (!detail::evaluates_at_compile_time<gain, detail::gain_of>) {
    static bool const kept = detail::keeps_to_sees_all<gain, detail::gain_of>();
    if (!kept)
      throw unsupported_error("at(lanes, own, all) of this rule's gain policy changes with all, but its sees_all is false: all would be zero");
  }
  if constexpr (!detail::evaluates_at_compile_time<evidence, detail::evidence_of>) {
    static bool const kept = detail::keeps_to_sees_all<evidence, detail::evidence_of>();
    if (!kept)
      throw unsupported_error("seen(own, all) of this rule's evidence policy changes with all, but its sees_all is false: all would be zero");
  }
}

/// Checks everything of a scan's inputs that does not need their contents, and returns the sizes.
/// @throws argument_error  naming the tensor, what was expected and what was given
template <any_rule Rule, class Storage, class Scalar>
scan_shape check_shapes(scan_inputs<Storage, Scalar> const& in) {
  check_policies<Rule>();
  scan_shape s = detail::shape_of_tokens<Storage>(in.q, in.k, in.v);
  if (in.cu_seqlens.present()) {
    if (in.cu_seqlens.rank != 1)
      throw argument_error("cu_seqlens", "[N+1], the boundaries of all sequences in one list",
                           detail::list_text(in.cu_seqlens) + " (a list a batch row: pack the rows into one, B = 1)");
    if (s.batch != 1) throw argument_error("q", "B = 1 with cu_seqlens", "B = " + std::to_string(s.batch));
    if (in.cu_seqlens.extent[0] < 1)
      throw argument_error("cu_seqlens", "[N+1], at least one boundary", std::to_string(in.cu_seqlens.extent[0]));
    detail::require_list("cu_seqlens", in.cu_seqlens);
    s.sequences = in.cu_seqlens.extent[0] - 1;
    detail::require_sizes(s);
  }
  detail::require_beta<Rule>("beta", in.beta, in.v, s);
  detail::require_gate<Rule>("log_decay", in.log_decay, in.v, s);
  detail::require_prior<Rule>("prior", in.prior, s);
  detail::require_eta("initial_eta", in.initial_eta, s, s.sequences);
  detail::require_evidence<Rule>("initial_evidence", in.initial_evidence, s, s.sequences);
  detail::require_scale<Scalar>(in.scale);
  return s;
}

/// Checks a scan's outputs against its sizes.
/// @throws argument_error
template <any_rule Rule, class Storage, class Scalar>
void check_shapes(scan_outputs<Storage, Scalar> const& out, scan_shape const& s) {
  detail::require_writable("out", out.out, "[B,T,HV,V]", {s.batch, s.tokens, s.value_heads, s.values});
  detail::require_variance<Rule>("out_variance", out.out_variance, s);
  detail::require_eta("final_eta", out.final_eta, s, s.sequences);
  detail::require_evidence<Rule>("final_evidence", out.final_evidence, s, s.sequences);
}

/// Checks a backward pass's cotangents and gradients against the sizes and the inputs they belong to.
/// @throws argument_error
template <any_rule Rule, class Storage, class Scalar>
void check_shapes(scan_inputs<Storage, Scalar> const& in, scan_cotangents<Storage, Scalar> const& up,
                  scan_gradients<Storage, Scalar> const& down, scan_shape const& s) {
  using detail::require_writable;
  if (up.grad_out.present())
    detail::require("grad_out", up.grad_out, "[B,T,HV,V]", {s.batch, s.tokens, s.value_heads, s.values});
  if (Rule::keeps_full && up.grad_out_variance.present())
    throw unsupported_error("grad_out_variance: the gradient of a full memory's variance is not offered; leave it absent");
  detail::require_variance<Rule>("grad_out_variance", up.grad_out_variance, s);
  detail::require_eta("grad_final_eta", up.grad_final_eta, s, s.sequences);
  detail::require_evidence<Rule>("grad_final_evidence", up.grad_final_evidence, s, s.sequences);

  auto const like_input = [&](char const* name, auto const& gradient, auto const& input, char const* input_name) {
    if (!gradient.present()) return;
    if (!input.present())
      throw argument_error(name, std::string("absent, since ") + input_name + " is absent", shape_text(gradient));
  };
  like_input("grad_beta", down.grad_beta, in.beta, "beta");
  like_input("grad_log_decay", down.grad_log_decay, in.log_decay, "log_decay");
  like_input("grad_prior", down.grad_prior, in.prior, "prior");

  if (down.grad_q.present())
    require_writable("grad_q", down.grad_q, "[B,T,HK,K]", {s.batch, s.tokens, s.key_heads, s.keys});
  if (down.grad_k.present())
    require_writable("grad_k", down.grad_k, "[B,T,HK,K]", {s.batch, s.tokens, s.key_heads, s.keys});
  if (down.grad_v.present())
    require_writable("grad_v", down.grad_v, "[B,T,HV,V]", {s.batch, s.tokens, s.value_heads, s.values});
  auto const shaped_as = [](char const* name, auto const& gradient, auto const& input) {
    if (!gradient.present()) return;
    bool same = gradient.rank == input.rank;
    for (int axis = 0; same && axis < input.rank; ++axis) same = gradient.extent[axis] == input.extent[axis];
    if (!same) throw argument_error(name, "the shape of its input, " + shape_text(input), shape_text(gradient));
    detail::require_memory(name, gradient);
    detail::require_apart(name, gradient);
  };
  bool const summed = down.grad_beta.rank == 3 && in.beta.rank == 4 && !per_channel(in.beta);
  if (summed || (Rule::keeps_full && s.values > 1 && down.grad_beta.present()))
    require_writable("grad_beta", down.grad_beta, "[B,T,HV]", {s.batch, s.tokens, s.value_heads});
  else
    shaped_as("grad_beta", down.grad_beta, in.beta);
  shaped_as("grad_log_decay", down.grad_log_decay, in.log_decay);
  shaped_as("grad_prior", down.grad_prior, in.prior);
  detail::require_eta("grad_initial_eta", down.grad_initial_eta, s, s.sequences);
  detail::require_evidence<Rule>("grad_initial_evidence", down.grad_initial_evidence, s, s.sequences);
}

/// Checks everything of a step that does not need the contents of its tensors, and returns the sizes (tokens = n, sequences = B).
/// @throws argument_error
template <any_rule Rule, class Storage, class Scalar>
scan_shape check_shapes(step_arguments<Storage, Scalar> const& a) {
  check_policies<Rule>();
  scan_shape const s = detail::shape_of_tokens<Storage>(a.q, a.k, a.v);
  detail::require_beta<Rule>("beta", a.beta, a.v, s);
  detail::require_gate<Rule>("log_decay", a.log_decay, a.v, s);
  detail::require_prior<Rule>("prior", a.prior, s);
  if (a.eta.rank != 4) throw argument_error("eta", "[slots,HV,V,K]", shape_text(a.eta));
  std::int64_t const slots = a.eta.extent[0];
  if (slots < 0) throw argument_error("eta", "at least 0 slots", shape_text(a.eta));
  detail::require_eta("eta", a.eta, s, slots, "[slots,HV,V,K]");
  if (!a.slot_in.present() && slots < s.batch)
    throw argument_error("eta", "at least B = " + std::to_string(s.batch) + " slots without slot_in", std::to_string(slots));
  if (Rule::keeps_precision && !a.evidence.present())
    throw argument_error("evidence", "a pool beside eta, since this rule keeps a precision", "absent");
  detail::require_evidence<Rule>("evidence", a.evidence, s, slots, Rule::keeps_full ? "[slots,HV,K,K]" : "[slots,HV,V,K]");
  auto const slots_shape = [&](char const* name, index_view const& list, bool per_token) {
    if (!list.present()) return;
    bool const one = list.rank == 1 && list.extent[0] == s.batch;
    bool const each = per_token && list.rank == 2 && list.extent[0] == s.batch && list.extent[1] == s.tokens;
    if (!one && !each)
      throw argument_error(name, per_token ? "[B] or [B,n]" : "[B]", detail::list_text(list));
    detail::require_list(name, list);
  };
  slots_shape("slot_in", a.slot_in, false);
  slots_shape("slot_out", a.slot_out, true);
  detail::require_writable("out", a.out, "[B,n,HV,V]", {s.batch, s.tokens, s.value_heads, s.values});
  detail::require_variance<Rule>("out_variance", a.out_variance, s);
  detail::require_scale<Scalar>(a.scale);
  return s;
}

}  // namespace palimpsa
