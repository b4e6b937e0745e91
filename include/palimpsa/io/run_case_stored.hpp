#pragma once
/// @file
/// Runs a case with q, k, v, out in the 16-bit types themselves: run_case, with the library's own loads and stores.

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/run_case.hpp"
#include "palimpsa/storage_eigen.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// As run_case. Compiles the rule in four types rather than two.
template <any_rule Rule> named_tensors run_case_stored(case_file const& given, run_options const& how = {}) {
  if (how.type == dtype::bf16) return detail::run_case_in<Rule, Eigen::bfloat16>(given, how);
  if (how.type == dtype::f16) return detail::run_case_in<Rule, Eigen::half>(given, how);
  return run_case<Rule>(given, how);
}

}  // namespace palimpsa::io
