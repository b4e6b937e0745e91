#pragma once
/// @file
/// Holds what a rule writes, or what another program wrote, against right values.
///
///     the file's value     is held against the float64 reference on the file's inputs, to the bound of the type it is stored as
///     this run's value     (of the library, on the path and in the type asked for) is held against the file's value if that is
///                          F64, else against the float64 reference; to the bound of its type. Inputs are first rounded to the
///                          types of the call; where that changes any, the right values are those of the rounded inputs.
///
/// Errors are relative to the right value's norm. One of the two is reported: the one that fails (the file's if both do), else the
/// file's if it is stored as F32, BF16 or F16 (it came from another program), else the run's.
///
///     out, grad_q, grad_k, grad_v      bounds.hpp, plus the rounding of 16-bit storage and its denormals
///     heads, sequences                 each also on its own norm (parts.hpp)
///     grad_log_decay                   also within each band of gates
///     out of one or two tokens         the condition of a read is in the bound (read_condition.hpp)
///     MesaNet's grad_initial_evidence  both sides symmetrised: the entries across the diagonal are one number
///     NaN, infinities                  fail, on either side

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
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
#include "palimpsa/io/diagnosis.hpp"
#include "palimpsa/io/layout.hpp"
#include "palimpsa/io/mistakes.hpp"
#include "palimpsa/io/parts.hpp"
#include "palimpsa/io/read_condition.hpp"
#include "palimpsa/io/report.hpp"
#include "palimpsa/io/rounded_case.hpp"
#include "palimpsa/io/rule_facts.hpp"
#include "palimpsa/io/run_options.hpp"
#include "palimpsa/io/selection.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

namespace detail {

inline void add_note(std::string& note, std::string const& more) { note += (note.empty() ? "" : "; ") + more; }

/// Both sides of a comparison, and by what it is bounded.
struct sides {
  std::vector<double> const& yours;
  std::vector<double> const& right;
  on_trial whose;
  std::string right_from;
  std::vector<dtype> types;  // the widest of their bounds counts
};

/// One verification: a case, what was run, and what it is held against.
class verification {
 public:
  verification(case_file const& given, rule_facts facts, run_options const& how, case_runner const& reference)
      : given_(given), facts_(facts), how_(how), reference_(reference), rounded_(rounded_case(given, how.type, changed_)) {}

  case_report run(case_runner const& under_test) {
    case_report report{given_.name, {}};
    try {
      run_forward_and_back(under_test);
    } catch (unsupported_error const& refusal) {
      skip_all(report, refusal.what());
      return report;
    }
    measure();
    for (auto const name : right_value_names) hold(report, name);
    return report;
  }

 private:
  /// Where a cotangent is no tensor of a call the forward pass is compared still.
  void run_forward_and_back(case_runner const& under_test) {
    for (auto const& one : given_.refused)
      if (is_cotangent(one.name)) no_backward_ = "cotangent " + one.name + ": " + one.why;
    if (!no_backward_.empty()) drop_cotangents();
    try {
      computed_ = under_test(rounded_, how_);
    } catch (argument_error const& refusal) {
      std::string const why = without_prefix(refusal.what());
      if (why.substr(0, 9) != "grad_out:" && why.substr(0, 18) != "grad_out_variance:" && why.substr(0, 11) != "grad_final_") throw;
      no_backward_ = "cotangent " + why;
      drop_cotangents();
      computed_ = under_test(rounded_, how_);
    }
  }

  void drop_cotangents() {
    for (auto const name : cotangent_names) (rounded_.*member_named(name)).reset();
    dropped_ = true;
  }

  static std::string without_prefix(std::string text) {
    constexpr std::string_view prefix = "palimpsa: ";
    return text.compare(0, prefix.size(), prefix) == 0 ? text.substr(prefix.size()) : text;
  }

  void skip_all(case_report& report, std::string const& reason) const {
    for (auto const name : right_value_names) {
      if (given_.*member_named(name))
        report.rows.push_back({std::string(name), verdict::skipped, 0, 0, 0, without_prefix(reason)});
    }
  }

  /// Sizes that bounds depend on. The library has accepted the case by now.
  void measure() {
    ranges_ = sequences_of(rounded_);
    for (auto const& sequence : ranges_) tokens_ = (std::max)(tokens_, sequence.last - sequence.first);
    if (facts_.solves) {
      condition_ = precision_condition(rounded_);
    } else if (facts_.triangular && how_.path == scan_path::chunked) {
      condition_ = triangle_condition(rounded_, facts_.exact_gain, how_.chunk);
    }
    if (given_.out) reads_ = read_magnitudes(rounded_, reference_);
  }

  /// The float64 reference on the file's inputs.
  named_tensors const& reference_values() {
    if (reference_values_.empty()) reference_values_ = reference_(dropped_ ? without_cotangents() : given_, {});
    return reference_values_;
  }
  /// The same on the inputs of the run.
  named_tensors const& rounded_values() {
    if (!changed_) return reference_values();
    if (rounded_values_.empty()) rounded_values_ = reference_(rounded_, {});
    return rounded_values_;
  }
  case_file without_cotangents() const {
    case_file forward = given_;
    for (auto const name : cotangent_names) (forward.*member_named(name)).reset();
    return forward;
  }

  /// Condition of the systems on the way to a tensor: the read of a full memory and all that flows back through it; the
  /// forward pass of a chunked DeltaNet, whose backward pass goes token by token.
  double condition_of(std::string_view name) const {
    bool const state = name == "final_eta" || name == "final_evidence", forward = name.substr(0, 5) != "grad_";
    return (facts_.solves ? !state : forward) ? condition_ : 0;
  }

  /// Why a tensor of the file has nothing to be compared with; empty where that is no fault of the file.
  std::string fault_of(std::string_view name) const {
    for (auto const& one : given_.refused)
      if (one.name == name) return one.why;
    auto const& stored = given_.*member_named(name);
    bool const backward = name.substr(0, 5) == "grad_", ran_backward = computed_.count("grad_q") != 0;
    if (!stored || computed_.count(name) != 0) return {};
    if (backward && !no_backward_.empty()) return no_backward_;
    if (!facts_.keeps_precision && (name == "out_variance" || name.find("evidence") != std::string_view::npos))
      return "expected absent, since this rule keeps no precision, given " + shape_text(stored->shape);
    if (backward && ran_backward)
      return "expected absent, since the file has no " + std::string(name.substr(5)) + ", given " + shape_text(stored->shape);
    return {};
  }

  void hold(case_report& report, std::string_view name) {
    auto const& stored = given_.*member_named(name);
    auto const computed = computed_.find(name);
    auto const add = [&](verdict outcome, std::string const& reason) {
      report.rows.push_back({std::string(name), outcome, 0, 0, 0, reason});
      report.rows.back().whose = on_trial::file;
    };
    if (auto const fault = fault_of(name); !fault.empty()) return add(verdict::failed, fault);
    if (!stored && computed == computed_.end()) return;
    if (!stored) return add(verdict::skipped, "no right value in the file");
    if (computed == computed_.end())
      return add(verdict::skipped, has_cotangents(given_) ? "no backward pass on this device" : "no cotangent in the file");
    if (stored->shape != computed->second.shape)
      return add(verdict::failed, shape_fault(name, computed->second.shape, stored->shape));
    bool const mirrored = facts_.solves && name == "grad_initial_evidence";
    auto const values = [&](std::vector<double> all) {
      if (mirrored) symmetrise(all, static_cast<std::size_t>(stored->shape.back()));
      return all;
    };
    auto const file = values(stored->values), run = values(computed->second.values);
    for (auto const& row : selections(name, file.size(), rounded_.log_decay)) {
      report.rows.push_back(tried(name, row, file, run, values));
    }
  }

  /// The row of the trial that is to be reported.
  template <class Values>
  tensor_report tried(std::string_view name, selection const& row, std::vector<double> const& file,
                      std::vector<double> const& run, Values values) {
    dtype const stored = (given_.*member_named(name))->stored, called = type_in_call(name, how_.type);
    bool const plain_run = how_.type == dtype::f64 && how_.path == scan_path::sequential;
    auto const file_types = changed_ ? std::vector{stored} : std::vector{stored, called};
    if (!changed_ && (stored == dtype::f64 || plain_run)) {
      auto const whose = plain_run ? on_trial::file : on_trial::run;
      auto first = plain_run ? judge(name, row, {file, run, whose, "the float64 reference's", file_types})
                             : judge(name, row, {run, file, whose, "the file's", {called}});
      if (first.outcome == verdict::ok) return first;
    }
    auto const reference = values(reference_values().at(name).values);
    auto own = judge(name, row, {file, reference, on_trial::file, "the float64 reference's", file_types});
    if (changed_) add_note(own.note, "inputs as they are");
    if (own.outcome == verdict::failed) return explained(std::move(own), name, row, file, reference, given_);
    bool const against_file = !changed_ && stored == dtype::f64;
    auto const right = against_file ? file : changed_ ? values(rounded_values().at(name).values) : reference;
    auto other = judge(name, row, {run, right, on_trial::run, against_file ? "the file's" : "the float64 reference's", {called}});
    if (changed_) add_note(other.note, "right value anew from inputs rounded to " + std::string(name_of(how_.type)));
    if (other.outcome == verdict::failed) return explained(std::move(other), name, row, run, right, rounded_);
    return stored != dtype::f64 ? own : other;
  }

  /// Adds the worst element and the usual mistake to a row that failed.
  tensor_report explained(tensor_report row, std::string_view name, selection const& elements, std::vector<double> const& yours,
                          std::vector<double> const& right, case_file const& inputs) const {
    tensor_layout const layout(name, (given_.*member_named(name))->shape, ranges_);
    row.worst = worst_of(layout, yours, right, elements.elements);
    if (!elements.whole) return row;
    suspect const s{layout, yours, right, row.error, row.bound, given_.scale, even_beta()};
    row.diagnosis = diagnose(s, [&] { return find_mistake(inputs, reference_, name, yours, row.error, row.bound); });
    return row;
  }

  /// β where it is one number, else 1.
  double even_beta() const {
    if (!given_.beta || given_.beta->values.empty()) return 1;
    auto const& all = given_.beta->values;
    bool const even = all.front() != 0 && std::all_of(all.begin(), all.end(), [&](double b) { return b == all.front(); });
    return even ? all.front() : 1;
  }

  tensor_report judge(std::string_view name, selection const& row, sides const& of) const {
    tensor_report result;
    result.tensor = row.name;
    result.whose = of.whose;
    result.right_from = of.right_from;
    auto const x = row.of(of.yours), right = row.of(of.right);
    distance const gap = distance_between(x, right);
    result.error = gap.relative;
    result.largest = gap.largest;
    double const norm = norm_of(right), read = row.whole ? read_condition(name, right, nullptr) : 0;
    result.bound = bound_for(name, of.types, read, right.size(), norm);
    bool const finite = std::isfinite(gap.relative);
    if (finite && row.whole) {
      tensor_layout const layout(name, (given_.*member_named(name))->shape, ranges_);
      result.parts = parts_of(layout, x, right, [&](std::size_t count, double part_norm, part_report const* part) {
        double const sum = name == "grad_prior" ? prior_gradient_condition : read_condition(name, right, part);
        return bound_for(name, of.types, sum, count, part_norm);
      });
    }
    bool const parts_hold = std::all_of(result.parts.begin(), result.parts.end(),
                                        [](part_report const& part) { return !part.held || part.error <= part.bound; });
    if (!(result.error <= result.bound) || !parts_hold) result.outcome = verdict::failed;
    describe(result, name, of, read, finite || all_finite(x), finite || all_finite(right));
    return result;
  }

  /// What the bound rests on, and what is out of the ordinary.
  void describe(tensor_report& result, std::string_view name, sides const& of, double read, bool finite, bool right_finite) const {
    if (how_.tolerance > 0) {
      add_note(result.note, "bound given as --tolerance");
    } else {
      if (condition_of(name) > 0) add_note(result.note, "cond " + short_number(condition_of(name)));
      if (read > 0) add_note(result.note, "cond " + short_number(read) + " of the reads");
    }
    dtype const stored = (given_.*member_named(name))->stored;
    if (of.whose == on_trial::file && stored != dtype::f64)
      add_note(result.note, "the file's " + std::string(name_of(stored)));
    if (!finite) add_note(result.note, of.whose == on_trial::file ? "the file's value is not finite" : "this run's value is not finite");
    if (!right_finite) add_note(result.note, "the right value is not finite");
    if (result.outcome == verdict::failed && result.error <= result.bound)
      add_note(result.note, "within the bound as a whole, but " + part_text(*worst_part(result)));
  }

  static std::string part_text(part_report const& part) {
    return std::string(part.is_head ? "head " : "sequence ") + std::to_string(part.index) + " is off by " + short_number(part.error) +
           ", bound " + short_number(part.bound);
  }

  static double norm_of(std::vector<double> const& values) {
    double unit = 0, sum = 0;
    for (double const x : values) unit = (std::max)(unit, std::abs(x));
    if (!(unit > 0) || !std::isfinite(unit)) return 0;
    for (double const x : values) sum += (x / unit) * (x / unit);
    return unit * std::sqrt(sum);
  }

  double bound_for(std::string_view name, std::vector<dtype> const& types, double read, std::size_t count, double norm) const {
    if (how_.tolerance > 0) return how_.tolerance;
    double bound = 0;
    for (dtype const type : types) {
      bound = (std::max)(bound, stored_bound(type, tokens_, (std::max)(condition_of(name), read)) + floor_bound(type, count, norm));
    }
    return bound;
  }

  /// ‖Σ|μ_ij q_j|‖ over ‖right‖ where reads carry their condition: all of `out`, a head of it, or a sequence; else 0.
  double read_condition(std::string_view name, std::vector<double> const& right, part_report const* part) const {
    if (name != "out" || reads_.size() != right.size()) return 0;
    bool const sequence = part != nullptr && !part->is_head;
    auto const length = [&] {
      auto const& range = ranges_[static_cast<std::size_t>(part->index)];
      return range.last - range.first;
    };
    if ((sequence ? length() : tokens_) > few_tokens) return 0;
    tensor_layout const layout(name, given_.out->shape, ranges_);
    double sums = 0, norm = 0;
    for (std::size_t i = 0; i < right.size(); ++i) {
      auto const place = layout.place(i);
      if (part != nullptr && (part->is_head ? place.head : place.sequence) != part->index) continue;
      sums += reads_[i] * reads_[i];
      norm += right[i] * right[i];
    }
    return norm > 0 ? std::sqrt(sums / norm) : 0;
  }

  case_file const& given_;  // NOLINT: lives shorter than the case
  rule_facts facts_;
  run_options how_;
  case_runner const& reference_;  // NOLINT: likewise
  bool changed_ = false, dropped_ = false;
  case_file rounded_;
  named_tensors computed_, reference_values_, rounded_values_;
  std::vector<token_range> ranges_;
  std::vector<double> reads_;
  std::string no_backward_;  // why there is none, where a cotangent is wrong
  std::int64_t tokens_ = 0;
  double condition_ = 0;
};

}  // namespace detail

/// Runs a case and holds what comes out, and what the file has, against right values.
/// @param facts of the rule, by which bounds are chosen
/// @param under_test runs the case as `how` says; unsupported_error makes every row `skipped`
/// @param reference runs the case in float64, token by token, on the CPU
/// @throws argument_error for a case that breaks the contract; a right value or cotangent of another shape fails alone
inline case_report verify_case(case_file const& given, rule_facts facts, case_runner const& under_test,
                               case_runner const& reference, run_options const& how) {
  return detail::verification(given, facts, how, reference).run(under_test);
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

}  // namespace palimpsa::io
