#pragma once
/// @file
/// A case in memory: the tensors and metadata of a case file, typed. case_file.hpp says what they are and reads them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/tensor.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// Does v come as the value itself, to be weighted by beta in the write, or with its weight in it already?
enum class value_weighting { likelihood, preweighted };

/// The gain of a DeltaNet's write: `plain` in a file that says explicit, `exact` (1/(1 + beta k.k)) in one that says
/// implicit.
enum class delta_gain { plain, exact };

/// A tensor of a case, in C order. Its values are exact: doubles hold every narrower type.
template <class Value> struct case_tensor {
  std::vector<std::int64_t> shape;  ///< extents
  std::vector<Value> values;        ///< as many as the product of the shape
  dtype stored;                     ///< the type the file has it in
};

/// Rules a case may name when the caller does not bring a list of their own.
inline constexpr std::array<std::string_view, 7> case_rules{
    "palimpsa", "mamba2", "longhorn", "delta_net", "gated_delta_net", "mesa_net", "diagonal_kalman"};

/// A right value or cotangent that cannot be what its name says: its type, or a rank that no shape of it has.
struct refused_tensor {
  std::string name;  ///< one of case_fields
  std::string why;   ///< "dtype: expected ..., given ..."
};

/// A case, typed. Ranks are checked; whether the extents agree with one another is for the library's own checks to say.
struct case_file {
  using reals = std::optional<case_tensor<double>>;            ///< a floating-point tensor, or none
  using integers = std::optional<case_tensor<std::int64_t>>;  ///< a tensor of integers, or none

  std::string name;                                          ///< metadata `case`, or the name of the file; fit for a terminal
  std::string rule;                                          ///< one of the rules that were allowed
  double scale = 1;                                          ///< finite
  value_weighting weighting = value_weighting::likelihood;  ///< metadata `value_weighting`
  std::optional<delta_gain> gain;                            ///< always there for delta_net and gated_delta_net

  /// @{
  /// What the call reads: shapes in case_fields, q, k and v always there.
  reals q, k, v;
  reals beta, log_decay, prior, initial_eta, initial_evidence;
  integers cu_seqlens;
  /// @}

  /// @{
  /// Right values of what the call writes; those that are there are compared.
  reals out, out_variance, final_eta, final_evidence;
  /// @}

  /// @{
  /// Derivatives of a loss with respect to what the call writes; absent = 0.
  reals grad_out, grad_out_variance, grad_final_eta, grad_final_evidence;
  /// @}

  /// @{
  /// Right values of its derivatives with respect to what the call reads.
  reals grad_q, grad_k, grad_v, grad_beta, grad_log_decay, grad_prior, grad_initial_eta, grad_initial_evidence;
  /// @}

  std::vector<std::string> unknown;     ///< names of other tensors, which nothing looks at; fit for a terminal
  std::vector<refused_tensor> refused;  ///< not read: each fails alone
};

/// Where a case keeps a floating-point tensor. (A name for the type: written out, nvcc hands it on with parentheses that g++ warns of.)
using reals_member = case_file::reals case_file::*;

/// One floating-point tensor a case may hold.
struct case_field {
  std::string_view name;                ///< in the file
  reals_member member;                  ///< where it goes
  std::size_t smallest_rank;            ///< with the fewest axes
  std::size_t largest_rank;             ///< with the most
  std::string_view shape;               ///< in words, for messages
};

/// Every floating-point tensor of a case; cu_seqlens, the only integer one, stands beside them.
inline constexpr std::array<case_field, 24> case_fields{{
    {"q", &case_file::q, 4, 4, "[B, T, HK, K]"},
    {"k", &case_file::k, 4, 4, "[B, T, HK, K]"},
    {"v", &case_file::v, 4, 4, "[B, T, HV, V]"},
    {"beta", &case_file::beta, 3, 4, "[B, T, HV] or [B, T, HV, V]"},
    {"log_decay", &case_file::log_decay, 3, 4, "[B, T, HV] or [B, T, HV, K]"},
    {"prior", &case_file::prior, 1, 2, "[HV] or [HV, K]"},
    {"initial_eta", &case_file::initial_eta, 4, 4, "[N, HV, V, K]"},
    {"initial_evidence", &case_file::initial_evidence, 4, 4, "[N, HV, V, K] or [N, HV, K, K]"},
    {"out", &case_file::out, 4, 4, "[B, T, HV, V]"},
    {"out_variance", &case_file::out_variance, 4, 4, "[B, T, HV, V]"},
    {"final_eta", &case_file::final_eta, 4, 4, "[N, HV, V, K]"},
    {"final_evidence", &case_file::final_evidence, 4, 4, "[N, HV, V, K] or [N, HV, K, K]"},
    {"grad_out", &case_file::grad_out, 4, 4, "[B, T, HV, V]"},
    {"grad_out_variance", &case_file::grad_out_variance, 4, 4, "[B, T, HV, V]"},
    {"grad_final_eta", &case_file::grad_final_eta, 4, 4, "[N, HV, V, K]"},
    {"grad_final_evidence", &case_file::grad_final_evidence, 4, 4, "[N, HV, V, K] or [N, HV, K, K]"},
    {"grad_q", &case_file::grad_q, 4, 4, "[B, T, HK, K]"},
    {"grad_k", &case_file::grad_k, 4, 4, "[B, T, HK, K]"},
    {"grad_v", &case_file::grad_v, 4, 4, "[B, T, HV, V]"},
    {"grad_beta", &case_file::grad_beta, 3, 4, "[B, T, HV] or [B, T, HV, V]"},
    {"grad_log_decay", &case_file::grad_log_decay, 3, 4, "[B, T, HV] or [B, T, HV, K]"},
    {"grad_prior", &case_file::grad_prior, 1, 2, "[HV] or [HV, K]"},
    {"grad_initial_eta", &case_file::grad_initial_eta, 4, 4, "[N, HV, V, K]"},
    {"grad_initial_evidence", &case_file::grad_initial_evidence, 4, 4, "[N, HV, V, K] or [N, HV, K, K]"},
}};

/// What a rule writes, in the order of a report: right values of the forward pass, then of the backward pass.
inline constexpr std::array<std::string_view, 12> right_value_names{
    "out",       "out_variance",   "final_eta",  "final_evidence",   "grad_q",               "grad_k", "grad_v",
    "grad_beta", "grad_log_decay", "grad_prior", "grad_initial_eta", "grad_initial_evidence"};

/// What the backward pass of a case starts from.
inline constexpr std::array<std::string_view, 4> cotangent_names{"grad_out", "grad_out_variance", "grad_final_eta",
                                                                 "grad_final_evidence"};

/// Is it one of right_value_names?
constexpr bool is_right_value(std::string_view name) {
  for (auto const one : right_value_names)
    if (one == name) return true;
  return false;
}

/// Is it one of cotangent_names?
constexpr bool is_cotangent(std::string_view name) {
  for (auto const one : cotangent_names)
    if (one == name) return true;
  return false;
}

/// The member of a case that holds the tensor of this name, one of case_fields.
inline reals_member member_named(std::string_view name) {
  for (auto const& field : case_fields)
    if (field.name == name) return field.member;
  return nullptr;
}

}  // namespace palimpsa::io
