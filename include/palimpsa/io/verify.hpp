#pragma once
/// @file
/// Holds a rule against a case file: runs the case by a path of the library, and each tensor that comes out is held to
/// its bound from the right value in the file.
///
///     inputs      rounded to the types of the call. Where that changes any, the right values are computed anew, in
///                 float64 by the sequential path, from the rounded ones; the file's own are first held against the same
///                 computation from the inputs as they are.
///     out, grad_q, grad_k, grad_v      bounds.hpp, plus the rounding of 16-bit storage
///     grad_log_decay                   also within each band of gates
///     MesaNet's grad_initial_evidence  both sides symmetrised: the entries across the diagonal are one number
///     a right value in F32, BF16, F16  came from another program: its bound is the wider of this run's and that of
///                                      arithmetic in float32 with this storage
///     NaN, infinities                  fail, on either side

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/error.hpp"
#include "palimpsa/io/bounds.hpp"
#include "palimpsa/io/case_call.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/condition.hpp"
#include "palimpsa/io/convert.hpp"
#include "palimpsa/io/file_error.hpp"
#include "palimpsa/io/report.hpp"
#include "palimpsa/io/run_case.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// Runs a case by one rule: run_case<Rule>, or the same on another device.
using case_runner = std::function<named_tensors(case_file const&, run_options const&)>;

/// x rounded once, to nearest even, to a floating-point type.
inline double rounded(double x, dtype type) {
  switch (type) {
    case dtype::f32:
      return binary32::decode(binary32::encode(x));
    case dtype::bf16:
      return bfloat16::decode(bfloat16::encode(x));
    case dtype::f16:
      return binary16::decode(binary16::encode(x));
    case dtype::f64:
    case dtype::i64:
    case dtype::i32:
      break;
  }
  return x;
}

/// The type that a call with this storage has the tensor of this name in: q, k, v, out, their gradients and grad_out in
/// its storage, everything else in F32 or better.
inline dtype type_in_call(std::string_view name, dtype storage) {
  constexpr std::array<std::string_view, 8> stored{"q", "k", "v", "out", "grad_out", "grad_q", "grad_k", "grad_v"};
  bool const narrow = std::find(stored.begin(), stored.end(), name) != stored.end();
  return narrow || storage == dtype::f64 ? storage : dtype::f32;
}

/// What a rule writes, in the order of a report: right values of the forward pass, then of the backward pass.
inline constexpr std::array<std::string_view, 12> right_value_names{
    "out",       "out_variance",   "final_eta",  "final_evidence",   "grad_q",               "grad_k", "grad_v",
    "grad_beta", "grad_log_decay", "grad_prior", "grad_initial_eta", "grad_initial_evidence"};

/// The member of a case that holds the tensor of this name, one of case_fields.
inline case_file::reals case_file::*member_named(std::string_view name) {
  auto const field = std::find_if(case_fields.begin(), case_fields.end(),
                                  [&](case_field const& candidate) { return candidate.name == name; });
  return field->member;
}

/// The case with its inputs and cotangents rounded to the types of a call with this storage. @param changed whether that
/// changed any of them
inline case_file rounded_case(case_file given, dtype storage, bool& changed) {
  changed = false;
  for (auto const& field : case_fields) {
    auto& tensor = given.*(field.member);
    bool const right = std::find(right_value_names.begin(), right_value_names.end(), field.name) != right_value_names.end();
    if (!tensor || right) continue;
    for (double& x : tensor->values) {
      double const y = rounded(x, type_in_call(field.name, storage));
      changed = changed || !(x == y || (std::isnan(x) && std::isnan(y)));
      x = y;
    }
  }
  return given;
}

namespace detail {

/// The elements of a tensor that share a row of the report.
struct selection {
  std::string name;
  std::vector<std::size_t> elements;
  bool whole = true;

  std::vector<double> of(std::vector<double> const& all) const {
    if (whole) return all;
    std::vector<double> some;
    for (auto const i : elements) some.push_back(all[i]);
    return some;
  }
};

/// All of a tensor, and of the gate's gradient also the bands that have an element.
inline std::vector<selection> selections(std::string_view name, case_file::reals const& log_decay) {
  std::vector<selection> rows{{std::string(name), {}, true}};
  if (name != "grad_log_decay" || !log_decay) return rows;
  for (auto const& band : gate_bands) {
    selection row{std::string(name) + " " + std::string(band.text), {}, false};
    for (std::size_t i = 0; i < log_decay->values.size(); ++i) {
      double const size = std::abs(log_decay->values[i]);
      if (size >= band.lower && size < band.upper) row.elements.push_back(i);
    }
    if (!row.elements.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

/// (G + Gᵀ)/2 over the last two axes, which are equal.
inline void symmetrise(case_tensor<double>& x) {
  auto const n = static_cast<std::size_t>(x.shape.back());
  for (std::size_t matrix = 0; n > 0 && matrix + n * n <= x.values.size(); matrix += n * n) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        double &a = x.values[matrix + i * n + j], &b = x.values[matrix + j * n + i];
        a = b = 0.5 * a + 0.5 * b;
      }
    }
  }
}

inline bool all_finite(std::vector<double> const& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

inline void add_note(std::string& note, std::string const& more) { note += (note.empty() ? "" : "; ") + more; }

/// One verification: a case, what was run, and what it is held against.
class verification {
 public:
  verification(case_file const& given, rule_facts facts, run_options const& how)
      : given_(given), facts_(facts), how_(how), rounded_(rounded_case(given, how.type, changed_)) {}

  case_report run(case_runner const& under_test, case_runner const& reference) {
    case_report report{given_.name, {}};
    try {
      computed_ = under_test(rounded_, how_);
    } catch (unsupported_error const& refusal) {
      skip_all(report, refusal.what());
      return report;
    }
    if (changed_) {
      right_ = reference(rounded_, {});
      own_ = reference(given_, {});
    }
    measure();
    for (auto const name : right_value_names) hold(report, name);
    return report;
  }

 private:
  void skip_all(case_report& report, std::string reason) const {
    constexpr std::string_view prefix = "palimpsa: ";
    if (reason.compare(0, prefix.size(), prefix) == 0) reason.erase(0, prefix.size());
    for (auto const name : right_value_names) {
      if (given_.*member_named(name)) report.rows.push_back({std::string(name), verdict::skipped, 0, 0, 0, reason});
    }
  }

  /// Sizes that bounds depend on. The library has accepted the case by now.
  void measure() {
    for (auto const& sequence : sequences_of(rounded_)) tokens_ = (std::max)(tokens_, sequence.last - sequence.first);
    if (facts_.solves) {
      condition_ = precision_condition(rounded_);
    } else if (facts_.triangular && how_.path == scan_path::chunked) {
      condition_ = triangle_condition(rounded_, facts_.exact_gain, how_.chunk);
    }
  }

  /// Condition of the systems on the way to a tensor: the read of a full memory and all that flows back through it; the
  /// forward pass of a chunked DeltaNet, whose backward pass goes token by token.
  double condition_of(std::string_view name) const {
    bool const state = name == "final_eta" || name == "final_evidence", forward = name.substr(0, 5) != "grad_";
    return (facts_.solves ? !state : forward) ? condition_ : 0;
  }

  void hold(case_report& report, std::string_view name) const {
    auto const& stored = given_.*member_named(name);
    auto const computed = computed_.find(name);
    auto const skip = [&](std::string const& reason) {
      report.rows.push_back({std::string(name), verdict::skipped, 0, 0, 0, reason});
    };
    if (!stored && computed == computed_.end()) return;
    if (!stored) return skip("no right value in the file");
    if (computed == computed_.end()) {
      return skip(has_cotangents(given_) ? "no backward pass on this device" : "no cotangent in the file");
    }
    if (stored->shape != computed->second.shape) {
      throw argument_error(std::string(name), shape_text(computed->second.shape), shape_text(stored->shape));
    }
    case_tensor<double> x = computed->second, own = *stored, right = changed_ ? right_.at(name) : own;
    case_tensor<double> again = changed_ ? own_.at(name) : own;
    if (facts_.solves && name == "grad_initial_evidence") {
      for (auto* tensor : {&x, &own, &right, &again}) symmetrise(*tensor);
    }
    for (auto const& row : selections(name, rounded_.log_decay)) {
      report.rows.push_back(judge(name, row, x.values, right.values));
      if (changed_) check_own(report.rows.back(), name, row.of(again.values), row.of(own.values));
    }
  }

  tensor_report judge(std::string_view name, selection const& row, std::vector<double> const& computed,
                      std::vector<double> const& right_values) const {
    double const condition = condition_of(name);
    dtype const stored = (given_.*member_named(name))->stored;
    tensor_report result;
    result.tensor = row.name;
    result.bound = stored_bound(type_in_call(name, how_.type), tokens_, condition);
    if (condition > 0) add_note(result.note, "cond " + short_number(condition));
    if (changed_) {
      add_note(result.note, "right value anew from inputs rounded to " + std::string(name_of(how_.type)));
    } else if (stored != dtype::f64) {
      result.bound = (std::max)(result.bound, stored_bound(stored, tokens_, condition));
      add_note(result.note, "right value stored as " + std::string(name_of(stored)));
    }
    auto const x = row.of(computed), right = row.of(right_values);
    distance const gap = distance_between(x, right);
    result.error = gap.relative;
    result.largest = gap.largest;
    if (!(result.error <= result.bound)) result.outcome = verdict::failed;
    if (!all_finite(x)) add_note(result.note, "the result is not finite");
    if (!all_finite(right)) add_note(result.note, "the right value is not finite");
    return result;
  }

  /// Right values that are computed anew vouch for nothing if the file's own are not met from the file's own inputs.
  void check_own(tensor_report& row, std::string_view name, std::vector<double> const& again,
                 std::vector<double> const& own) const {
    double const bound = stored_bound((given_.*member_named(name))->stored, tokens_, condition_of(name));
    double const error = distance_between(again, own).relative;
    if (error <= bound) return;
    row.outcome = verdict::failed;
    add_note(row.note, "the file's own right value is " + short_number(error) + " from the float64 reference, bound " +
                           short_number(bound));
  }

  case_file const& given_;  // NOLINT: lives shorter than the case
  rule_facts facts_;
  run_options how_;
  bool changed_ = false;
  case_file rounded_;
  named_tensors computed_, right_, own_;  // right_: anew from rounded inputs; own_: from the file's
  std::int64_t tokens_ = 0;
  double condition_ = 0;
};

}  // namespace detail

/// Runs a case and holds what comes out against the right values in it.
/// @param facts of the rule, by which bounds are chosen
/// @param under_test runs the case as `how` says; unsupported_error makes every row `skipped`
/// @param reference runs the case in float64, token by token, on the CPU; asked only where rounding changes an input
/// @throws argument_error for a case that breaks the contract, and for a right value of another shape than the result
inline case_report verify_case(case_file const& given, rule_facts facts, case_runner const& under_test,
                               case_runner const& reference, run_options const& how) {
  return detail::verification(given, facts, how).run(under_test, reference);
}

/// The same for any rule, a user's own too.
template <any_rule Rule> case_report verify_case(case_file const& given, run_options const& how = {}) {
  return verify_case(given, facts_of<Rule>(), run_case<Rule>, run_case<Rule>, how);
}

/// The case with the right values it lacks, in float64 by the sequential path: those of the forward pass, and where it
/// has a cotangent those of the backward pass.
inline case_file completed_case(case_file given, case_runner const& reference) {
  auto const computed = reference(given, {});
  for (auto const name : right_value_names) {
    auto& tensor = given.*member_named(name);
    auto const found = computed.find(name);
    if (!tensor && found != computed.end()) tensor = found->second;
  }
  return given;
}

/// The same for any rule, a user's own too.
template <any_rule Rule> case_file completed_case(case_file given) {
  return completed_case(std::move(given), run_case<Rule>);
}

}  // namespace palimpsa::io
