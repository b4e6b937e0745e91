#pragma once
/// @file
/// A call in memory, and what a kernel wrote for it, as a case. nvcc compiles it, too: it sees neither Eigen nor the CPU's rules.

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "palimpsa/arguments.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/tensor.hpp"
#include "palimpsa/rule.hpp"
#include "palimpsa/storage.hpp"
#include "palimpsa/view.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {
namespace detail {

/// The type of a file for elements of this type.
template <class T> dtype dtype_of() {
  std::string_view const name = storage<T>::name;
  if (name == "float64") return dtype::f64;
  if (name == "bfloat16") return dtype::bf16;
  return name == "float16" ? dtype::f16 : dtype::f32;
}

/// A view's elements, dense. Absent if it is.
template <class T> case_file::reals dense(view<T> const& from) {
  using element = std::remove_const_t<T>;
  if (!from.present()) return std::nullopt;
  case_tensor<double> to{{from.extent, from.extent + from.rank}, {}, dtype_of<element>()};
  std::int64_t size[view<T>::max_rank] = {1, 1, 1, 1}, step[view<T>::max_rank] = {};
  for (int axis = 0; axis < from.rank; ++axis) size[axis] = from.extent[axis], step[axis] = from.stride[axis];
  for (std::int64_t a = 0; a < size[0]; ++a)
    for (std::int64_t b = 0; b < size[1]; ++b)
      for (std::int64_t c = 0; c < size[2]; ++c)
        for (std::int64_t d = 0; d < size[3]; ++d) {
          T const& x = from.data[a * step[0] + b * step[1] + c * step[2] + d * step[3]];
          to.values.push_back(static_cast<double>(storage<element>::load(x)));
        }
  return to;
}

}  // namespace detail

/// A call, and what a kernel wrote for it, as a case; views of host memory.
/// @param cotangents and gradients of its backward pass, where it has one
template <any_rule Rule, class Storage, class Scalar>
case_file case_of(scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& yours,
                  scan_cotangents<Storage, Scalar> const& cotangents = {}, scan_gradients<Storage, Scalar> const& gradients = {}) {
  using detail::dense;
  case_file result;
  result.name = "yours";
  result.scale = in.scale;
  result.weighting = std::is_same_v<typename Rule::weighting_type, weighting::preweighted> ? value_weighting::preweighted
                                                                                          : value_weighting::likelihood;
  result.q = dense(in.q), result.k = dense(in.k), result.v = dense(in.v);
  result.beta = dense(in.beta), result.log_decay = dense(in.log_decay), result.prior = dense(in.prior);
  result.initial_eta = dense(in.initial_eta), result.initial_evidence = dense(in.initial_evidence);
  if (in.cu_seqlens.present()) {
    result.cu_seqlens.emplace();
    result.cu_seqlens->shape = {in.cu_seqlens.extent[0]};
    result.cu_seqlens->stored = dtype::i64;
    for (std::int64_t n = 0; n < in.cu_seqlens.extent[0]; ++n) result.cu_seqlens->values.push_back(in.cu_seqlens(n));
  }
  result.out = dense(yours.out), result.out_variance = dense(yours.out_variance);
  result.final_eta = dense(yours.final_eta), result.final_evidence = dense(yours.final_evidence);
  result.grad_out = dense(cotangents.grad_out), result.grad_out_variance = dense(cotangents.grad_out_variance);
  result.grad_final_eta = dense(cotangents.grad_final_eta), result.grad_final_evidence = dense(cotangents.grad_final_evidence);
  result.grad_q = dense(gradients.grad_q), result.grad_k = dense(gradients.grad_k), result.grad_v = dense(gradients.grad_v);
  result.grad_beta = dense(gradients.grad_beta), result.grad_log_decay = dense(gradients.grad_log_decay);
  result.grad_prior = dense(gradients.grad_prior);
  result.grad_initial_eta = dense(gradients.grad_initial_eta);
  result.grad_initial_evidence = dense(gradients.grad_initial_evidence);
  return result;
}

}  // namespace palimpsa::io
