#pragma once
/// @file
/// A case in the types of a call.

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/convert.hpp"
#include "palimpsa/io/tensor.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// Has the case the derivative of a loss with respect to anything the rule writes?
inline bool has_cotangents(case_file const& given) {
  return given.grad_out || given.grad_out_variance || given.grad_final_eta || given.grad_final_evidence;
}

/// The type that a call with this storage has the tensor of this name in: q, k, v, out, their gradients and grad_out in
/// its storage, everything else in F32 or better.
inline dtype type_in_call(std::string_view name, dtype storage) {
  constexpr std::array<std::string_view, 8> stored{"q", "k", "v", "out", "grad_out", "grad_q", "grad_k", "grad_v"};
  bool const narrow = std::find(stored.begin(), stored.end(), name) != stored.end();
  return narrow || storage == dtype::f64 ? storage : dtype::f32;
}

/// The case with its inputs and cotangents rounded to the types of a call with this storage. @param changed whether that
/// changed any of them
inline case_file rounded_case(case_file given, dtype storage, bool& changed) {
  changed = false;
  for (auto const& field : case_fields) {
    auto& tensor = given.*(field.member);
    if (!tensor || is_right_value(field.name)) continue;
    for (double& x : tensor->values) {
      double const y = rounded(x, type_in_call(field.name, storage));
      changed = changed || !(x == y || (std::isnan(x) && std::isnan(y)));
      x = y;
    }
  }
  return given;
}

}  // namespace palimpsa::io
