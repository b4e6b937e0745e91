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

/// The inside of "np.float32(...)", which NumPy 2 writes for repr of a number of its own, and the type its digits are of.
inline std::string_view inside_scalar(std::string_view text, dtype& type) {
  struct {
    std::string_view name;
    dtype type;
  } constexpr known[] = {{"float64(", dtype::f64}, {"float32(", dtype::f32}, {"float16(", dtype::f16},
                         {"int64(", dtype::f64},   {"int32(", dtype::f64}};
  for (std::string_view const module : {"np.", "numpy."}) {
    for (auto const& one : known) {
      auto const opened = module.size() + one.name.size();
      if (text.size() <= opened || text.substr(0, module.size()) != module || text.back() != ')') continue;
      if (text.substr(module.size(), one.name.size()) != one.name) continue;
      type = one.type;
      return text.substr(opened, text.size() - opened - 1);
    }
  }
  return text;
}

/// A whole string that is a finite decimal number, whatever the locale.
inline double parse_scale(metadata_map const& metadata, std::string const& file) {
  auto const entry = metadata.find("scale");
  if (entry == metadata.end()) refuse(file, "metadata 'scale'", "a number", "no such field");
  dtype type = dtype::f64;
  auto const text = inside_scalar(entry->second, type);
  double scale = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(scale)) {
    refuse(file, "metadata 'scale'", "a finite decimal number", "'" + printable(entry->second) + "'");
  }
  return rounded(scale, type);  // the digits of a float32 tell that float32 alone
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

/// "dtype: expected ..., given ..." of a tensor that cannot be what its name says; empty if it can.
inline std::string fault_of(tensor const& given, bool right_type, std::string_view types, std::size_t smallest,
                            std::size_t largest, std::string_view shape) {
  auto const sentence = [](std::string const& what, std::string_view expected, std::string const& found) {
    return what + ": expected " + std::string(expected) + ", given " + found;
  };
  if (!right_type) return sentence("dtype", types, printable(type_name(given)));
  bool const rank_fits = given.shape.size() >= smallest && given.shape.size() <= largest;
  return rank_fits ? "" : sentence("shape", shape, shape_text(given.shape));
}

inline std::string fault_of(tensor const& given, case_field const& field) {
  return fault_of(given, is_float(given.type), "F64, F32, BF16 or F16", field.smallest_rank, field.largest_rank, field.shape);
}

/// Takes a floating-point tensor in. An input has to be right; what is compared, or a cotangent, may fail alone.
inline void read_reals(case_file& result, tensor const& source, case_field const& field, std::string const& file) {
  auto const fault = fault_of(source, field);
  if (fault.empty()) {
    result.*(field.member) = case_tensor<double>{source.shape, to_doubles(source), source.type};
  } else if (is_right_value(field.name) || is_cotangent(field.name)) {
    result.refused.push_back({std::string(field.name), fault});
  } else {
    throw file_error(file + ": tensor '" + std::string(field.name) + "': " + fault);
  }
}

inline case_tensor<std::int64_t> read_lengths(tensor const& source, std::string const& file) {
  bool const integers = source.type == dtype::i32 || source.type == dtype::i64;
  auto const fault = fault_of(source, integers, "I32 or I64", 1, 1, "[N + 1]");
  if (!fault.empty()) throw file_error(file + ": tensor 'cu_seqlens': " + fault);
  return {{source.shape.front()}, to_integers(source), source.type};
}

}  // namespace detail

/// Reads a case from a safetensors file that is in memory already.
/// @param contents as read() or parse() gave it. @param file the name that errors carry.
/// @param rules the values `rule` may have: a program with a rule of its own adds its name.
/// @throws file_error for another format, metadata that are absent or not one of the values allowed, q, k or v absent,
/// and an input of the wrong kind or of a rank that no shape of it has. A right value or cotangent of that sort goes to
/// case_file::refused.
inline case_file to_case(tensor_file const& contents, std::string const& file,
                         std::span<std::string_view const> rules = case_rules) {
  case_file result;
  detail::read_metadata(result, contents.metadata, rules, file);
  for (auto const& [name, source] : contents.tensors) {
    auto const field = std::find_if(case_fields.begin(), case_fields.end(),
                                    [&, &key = name](case_field const& candidate) { return candidate.name == key; });
    if (field != case_fields.end()) {
      detail::read_reals(result, source, *field, file);
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
