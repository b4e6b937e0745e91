#pragma once
/// @file
/// Case files: one problem with its inputs and, where somebody knows them, its right values. A case is a safetensors
/// file with
///
///     metadata      format = palimpsa-case-1, rule, scale, value_weighting; gain (read for the DeltaNets only); case
///     inputs        q k v beta log_decay prior initial_eta initial_evidence cu_seqlens
///     right values  out out_variance final_eta final_evidence, and of the backward pass grad_q grad_k grad_v grad_beta
///                   grad_log_decay grad_prior grad_initial_eta grad_initial_evidence
///     cotangents    grad_out grad_out_variance grad_final_eta grad_final_evidence
///
/// Only q, k, v must be there. Floating-point tensors may be F64 F32 BF16 F16, cu_seqlens I32 or I64.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "palimpsa/io/convert.hpp"
#include "palimpsa/io/file_error.hpp"
#include "palimpsa/io/reader.hpp"
#include "palimpsa/io/tensor.hpp"

namespace palimpsa::io {

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

  std::vector<std::string> unknown;  ///< names of other tensors, which nothing looks at; fit for a terminal
};

/// One floating-point tensor a case may hold.
struct case_field {
  std::string_view name;                ///< in the file
  case_file::reals case_file::*member;  ///< where it goes
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

namespace detail {

/// "a, b or c"
inline std::string choice_text(std::span<std::string_view const> choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i];
  }
  return text;
}

/// The index of a metadata field's value among `choices`; a field that is absent is an error.
inline std::size_t chosen(metadata_map const& metadata, std::string_view field,
                          std::span<std::string_view const> choices, std::string const& file) {
  auto const place = "metadata '" + std::string(field) + "'";
  auto const entry = metadata.find(field);
  if (entry == metadata.end()) refuse(file, place, choice_text(choices), "no such field");
  auto const found = std::find(choices.begin(), choices.end(), entry->second);
  if (found == choices.end()) refuse(file, place, choice_text(choices), "'" + printable(entry->second) + "'");
  return static_cast<std::size_t>(found - choices.begin());
}

/// A whole string that is a finite decimal number, whatever the locale.
inline double parse_scale(metadata_map const& metadata, std::string const& file) {
  auto const entry = metadata.find("scale");
  if (entry == metadata.end()) refuse(file, "metadata 'scale'", "a number", "no such field");
  auto const& text = entry->second;
  double scale = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(scale)) {
    refuse(file, "metadata 'scale'", "a finite decimal number", "'" + printable(text) + "'");
  }
  return scale;
}

inline void read_metadata(case_file& result, metadata_map const& metadata, std::span<std::string_view const> rules,
                          std::string const& file) {
  constexpr std::array<std::string_view, 1> formats{"palimpsa-case-1"};
  constexpr std::array<std::string_view, 2> weightings{"likelihood", "preweighted"};
  constexpr std::array<std::string_view, 2> gains{"explicit", "implicit"};
  // Below, an enumerator is the index of its word.
  chosen(metadata, "format", formats, file);
  result.rule = rules[chosen(metadata, "rule", rules, file)];
  result.scale = parse_scale(metadata, file);
  result.weighting = static_cast<value_weighting>(chosen(metadata, "value_weighting", weightings, file));
  bool const reads_gain = result.rule == "delta_net" || result.rule == "gated_delta_net";
  if (reads_gain || metadata.count("gain") != 0) {
    result.gain = static_cast<delta_gain>(chosen(metadata, "gain", gains, file));
  }
  auto const name = metadata.find("case");
  result.name = printable(name != metadata.end() ? name->second : std::filesystem::path(file).stem().string());
}

inline void check_rank(tensor const& given, std::size_t smallest, std::size_t largest, std::string_view shape,
                       std::string const& place, std::string const& file) {
  if (given.shape.size() < smallest || given.shape.size() > largest) {
    refuse(file, place + ": shape", std::string(shape), shape_text(given.shape));
  }
}

inline case_tensor<double> read_reals(tensor const& source, case_field const& field, std::string const& file) {
  auto const place = "tensor '" + std::string(field.name) + "'";
  if (!is_float(source.type))
    refuse(file, place + ": dtype", "F64, F32, BF16 or F16", std::string(name_of(source.type)));
  check_rank(source, field.smallest_rank, field.largest_rank, field.shape, place, file);
  return {source.shape, to_doubles(source), source.type};
}

inline case_tensor<std::int64_t> read_lengths(tensor const& source, std::string const& file) {
  std::string const place = "tensor 'cu_seqlens'";
  if (is_float(source.type)) refuse(file, place + ": dtype", "I32 or I64", std::string(name_of(source.type)));
  check_rank(source, 1, 1, "[N + 1]", place, file);
  return {{source.shape.front()}, to_integers(source), source.type};
}

}  // namespace detail

/// Reads a case from a safetensors file that is in memory already.
/// @param contents as read() or parse() gave it. @param file the name that errors carry.
/// @param rules the values `rule` may have: a program with a rule of its own adds its name.
/// @throws file_error for another format, metadata that are absent or not one of the values allowed, q, k or v absent,
/// and a tensor of the wrong kind or of a rank that no shape of it has.
inline case_file to_case(tensor_file const& contents, std::string const& file,
                         std::span<std::string_view const> rules = case_rules) {
  case_file result;
  detail::read_metadata(result, contents.metadata, rules, file);
  for (auto const& [name, source] : contents.tensors) {
    auto const field = std::find_if(case_fields.begin(), case_fields.end(),
                                    [&, &key = name](case_field const& candidate) { return candidate.name == key; });
    if (field != case_fields.end()) {
      result.*(field->member) = detail::read_reals(source, *field, file);
    } else if (name == "cu_seqlens") {
      result.cu_seqlens = detail::read_lengths(source, file);
    } else {
      result.unknown.push_back(detail::printable(name));
    }
  }
  for (auto const required : {"q", "k", "v"}) {
    if (contents.tensors.count(required) == 0) {
      detail::refuse(file, "tensor '" + std::string(required) + "'", "to be there: a case needs q, k and v", "none");
    }
  }
  return result;
}

/// Reads a case from disk. @throws file_error as read() and to_case() do.
inline case_file read_case(std::filesystem::path const& path, std::span<std::string_view const> rules = case_rules) {
  return to_case(read(path), path.string(), rules);
}

}  // namespace palimpsa::io
