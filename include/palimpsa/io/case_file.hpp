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
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/convert.hpp"
#include "palimpsa/io/file_error.hpp"
#include "palimpsa/io/reader.hpp"
#include "palimpsa/io/tensor.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {
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
