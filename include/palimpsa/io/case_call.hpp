#pragma once
/// @file
/// A case as the arguments of a call: its tensors in the types of the call, room for what the call writes, and that back
/// as doubles. Outputs hold NaN beforehand, so that an element a call leaves out shows.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsa/arguments.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/error.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/tensor.hpp"
#include "palimpsa/rule.hpp"
#include "palimpsa/shape.hpp"
#include "palimpsa/storage.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// Tensors by the names that case_fields has.
using named_tensors = std::map<std::string_view, case_tensor<double>>;

/// A dense tensor of a call.
template <class T> struct dense_tensor {
  std::vector<std::int64_t> shape;  ///< empty = absent
  std::vector<T> values;            ///< C order

  /// An absent one.
  dense_tensor() = default;
  /// All NaN.
  explicit dense_tensor(std::vector<std::int64_t> extents) : shape(std::move(extents)) {
    std::size_t count = 1;
    for (auto const extent : shape) count *= static_cast<std::size_t>(extent);
    values.assign(count, of(std::numeric_limits<double>::quiet_NaN()));
  }
  /// A case's tensor, each value rounded by way of the type of the arithmetic.
  explicit dense_tensor(case_file::reals const& source) {
    if (!source) return;
    shape = source->shape;
    values.reserve(source->values.size());
    for (double const x : source->values) values.push_back(of(x));
  }

  /// x as T.
  static T of(double x) { return storage<T>::store(static_cast<typename storage<T>::scalar>(x)); }
  /// Is it there?
  bool present() const { return !shape.empty(); }

  /// As a call takes it.
  view<T> as_view() {
    view<T> all;
    all.data = values.data();
    all.rank = static_cast<int>(shape.size());
    for (int axis = 0; axis < all.rank; ++axis) all.extent[axis] = shape[static_cast<std::size_t>(axis)];
    dense_strides(all.rank, all.extent, all.stride);
    return all;
  }

  /// Adds it under its name, if it is there.
  void add_to(named_tensors& all, std::string_view name) const {
    if (!present()) return;
    constexpr dtype type = sizeof(T) == 8 ? dtype::f64 : dtype::f32;
    case_tensor<double> result{shape, {}, type};
    result.values.reserve(values.size());
    for (T const& x : values) result.values.push_back(static_cast<double>(storage<T>::load(x)));
    all[name] = std::move(result);
  }
};

/// What a scan or a step of a case reads, and the cotangents of its backward pass.
template <class Storage> struct case_inputs {
  using scalar = typename storage<Storage>::scalar;  ///< of the arithmetic

  dense_tensor<Storage> q;                   ///< as in the case
  dense_tensor<Storage> k;                   ///< as in the case
  dense_tensor<Storage> v;                   ///< as in the case
  dense_tensor<scalar> beta;                 ///< as in the case
  dense_tensor<scalar> log_decay;            ///< as in the case
  dense_tensor<scalar> prior;                ///< as in the case
  dense_tensor<scalar> initial_eta;          ///< as in the case
  dense_tensor<scalar> initial_evidence;     ///< as in the case
  case_file::integers cu_seqlens;            ///< as in the case
  double scale;                              ///< as in the case
  dense_tensor<Storage> grad_out;            ///< as in the case
  dense_tensor<scalar> grad_out_variance;    ///< as in the case
  dense_tensor<scalar> grad_final_eta;       ///< as in the case
  dense_tensor<scalar> grad_final_evidence;  ///< as in the case

  /// Copies them.
  explicit case_inputs(case_file const& given)
      : q(given.q),
        k(given.k),
        v(given.v),
        beta(given.beta),
        log_decay(given.log_decay),
        prior(given.prior),
        initial_eta(given.initial_eta),
        initial_evidence(given.initial_evidence),
        cu_seqlens(given.cu_seqlens),
        scale(given.scale),
        grad_out(given.grad_out),
        grad_out_variance(given.grad_out_variance),
        grad_final_eta(given.grad_final_eta),
        grad_final_evidence(given.grad_final_evidence) {}

  /// As a scan takes them.
  scan_inputs<Storage> arguments() {
    scan_inputs<Storage> in;
    in.q = q.as_view();
    in.k = k.as_view();
    in.v = v.as_view();
    in.beta = beta.as_view();
    in.log_decay = log_decay.as_view();
    in.prior = prior.as_view();
    in.initial_eta = initial_eta.as_view();
    in.initial_evidence = initial_evidence.as_view();
    if (cu_seqlens) {
      auto const& boundaries = cu_seqlens->values;
      in.cu_seqlens = {boundaries.data(), static_cast<std::int64_t>(boundaries.size())};
    }
    in.scale = scale;
    return in;
  }

  /// As a backward pass takes them.
  scan_cotangents<Storage> cotangents() {
    return {grad_out.as_view(), grad_out_variance.as_view(), grad_final_eta.as_view(), grad_final_evidence.as_view()};
  }
};

/// What a scan or a step of a case writes.
template <class Storage> struct case_outputs {
  using scalar = typename storage<Storage>::scalar;  ///< of the arithmetic

  dense_tensor<Storage> out;            ///< [B,T,HV,V]
  dense_tensor<scalar> out_variance;    ///< [B,T,HV,V], or absent
  dense_tensor<scalar> final_eta;       ///< [N,HV,V,K]
  dense_tensor<scalar> final_evidence;  ///< [N,HV,V,K] or [N,HV,K,K], or absent

  /// Room for them. @param rows of a head's evidence @param variance with out_variance @param evidence with final_evidence
  case_outputs(scan_shape const& s, std::int64_t rows, bool variance, bool evidence)
      : out({s.batch, s.tokens, s.value_heads, s.values}), final_eta({s.sequences, s.value_heads, s.values, s.keys}) {
    if (variance) out_variance = dense_tensor<scalar>(out.shape);
    if (evidence) final_evidence = dense_tensor<scalar>({s.sequences, s.value_heads, rows, s.keys});
  }

  /// As a scan takes them.
  scan_outputs<Storage> arguments() {
    return {out.as_view(), out_variance.as_view(), final_eta.as_view(), final_evidence.as_view()};
  }

  /// Back as doubles.
  void add_to(named_tensors& all) const {
    out.add_to(all, "out");
    out_variance.add_to(all, "out_variance");
    final_eta.add_to(all, "final_eta");
    final_evidence.add_to(all, "final_evidence");
  }
};

namespace detail {

/// A file of some bytes can name a million heads or sequences of no tokens, whose states take more memory than there is.
inline void refuse_excess(case_file const& given, scan_shape const& s, std::int64_t evidence_rows) {
  auto const size_of = [](auto const& tensor) { return tensor ? static_cast<double>(tensor->values.size()) : 0.0; };
  double const read = size_of(given.q) + size_of(given.v) + size_of(given.cu_seqlens) + size_of(given.initial_eta);
  double const heads = static_cast<double>(s.sequences) * static_cast<double>(s.value_heads);
  double const states = heads * static_cast<double>((s.values + evidence_rows) * s.keys);
  if (states > 0x1p26 + 256 * read) {
    throw argument_error("final_eta", "states in proportion to the inputs",
                         "N = " + std::to_string(s.sequences) + ", HV = " + std::to_string(s.value_heads) +
                             ", V = " + std::to_string(s.values) + ", K = " + std::to_string(s.keys));
  }
}

}  // namespace detail

/// Room for all that a rule writes for a case of these sizes.
/// @throws argument_error for states out of proportion to the inputs
template <any_rule Rule, class Storage> case_outputs<Storage> outputs_for(case_file const& given, scan_shape const& s) {
  std::int64_t const rows = Rule::keeps_full ? s.keys : Rule::keeps_diagonal ? s.values : 0;
  detail::refuse_excess(given, s, rows);
  return {s, rows, Rule::keeps_precision, Rule::keeps_precision};
}

/// What the backward pass of a case writes.
template <class Storage> struct case_gradients {
  using scalar = typename storage<Storage>::scalar;  ///< of the arithmetic

  dense_tensor<Storage> grad_q;                ///< shaped as q
  dense_tensor<Storage> grad_k;                ///< shaped as k
  dense_tensor<Storage> grad_v;                ///< shaped as v
  dense_tensor<scalar> grad_beta;              ///< shaped as beta, or absent
  dense_tensor<scalar> grad_log_decay;         ///< shaped as log_decay, or absent
  dense_tensor<scalar> grad_prior;             ///< shaped as prior, or absent
  dense_tensor<scalar> grad_initial_eta;       ///< [N,HV,V,K], or absent
  dense_tensor<scalar> grad_initial_evidence;  ///< shaped as initial_evidence, or absent

  /// Room for the gradients of all inputs that the case has, and of absent initial states where it has their gradient.
  /// @param keeps_precision of the rule: without one there is no initial evidence
  explicit case_gradients(case_file const& given, bool keeps_precision = true)
      : grad_q(given.q->shape), grad_k(given.k->shape), grad_v(given.v->shape) {
    auto const room = [](dense_tensor<scalar>& gradient, case_file::reals const& input) {
      if (input) gradient = dense_tensor<scalar>(input->shape);
    };
    room(grad_beta, given.beta);
    room(grad_log_decay, given.log_decay);
    room(grad_prior, given.prior);
    room(grad_initial_eta, given.initial_eta ? given.initial_eta : given.grad_initial_eta);
    if (!keeps_precision) return;
    room(grad_initial_evidence, given.initial_evidence ? given.initial_evidence : given.grad_initial_evidence);
  }

  /// As a backward pass takes them.
  scan_gradients<Storage> arguments() {
    return {grad_q.as_view(),         grad_k.as_view(),     grad_v.as_view(),           grad_beta.as_view(),
            grad_log_decay.as_view(), grad_prior.as_view(), grad_initial_eta.as_view(), grad_initial_evidence.as_view()};
  }

  /// Back as doubles.
  void add_to(named_tensors& all) const {
    grad_q.add_to(all, "grad_q");
    grad_k.add_to(all, "grad_k");
    grad_v.add_to(all, "grad_v");
    grad_beta.add_to(all, "grad_beta");
    grad_log_decay.add_to(all, "grad_log_decay");
    grad_prior.add_to(all, "grad_prior");
    grad_initial_eta.add_to(all, "grad_initial_eta");
    grad_initial_evidence.add_to(all, "grad_initial_evidence");
  }
};

}  // namespace palimpsa::io
