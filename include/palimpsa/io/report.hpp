#pragma once
/// @file
/// What a verification says: one row per tensor, printed as an aligned table with the worst element of every row that
/// failed, and the tally of all rows.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/layout.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// How a tensor fared.
enum class verdict { ok, failed, skipped };

/// Whose values a row holds against the right ones.
enum class on_trial {
  file,  ///< what the file has under the tensor's name: another program's
  run    ///< what this run of the library wrote, on the path and in the type asked for
};

/// One head, or one sequence, of a tensor, on its own.
struct part_report {
  bool is_head = true;      ///< a head; else a sequence
  std::int64_t index = 0;   ///< which
  double error = 0;         ///< ‖yours - right‖₂ / ‖right‖₂ of its elements
  double bound = 0;         ///< on the error
  bool held = false;        ///< to the bound: where its right norm is above 2⁻²⁰ of the largest such part's
};

/// The element that is farthest off.
struct worst_element {
  element_place place;  ///< where it is
  double yours = 0;     ///< what is on trial has there
  double right = 0;     ///< what it ought to be
};

/// One tensor of a case, held against its right value.
struct tensor_report {
  std::string tensor;                  ///< its name in the case file; grad_log_decay also by band, "grad_log_decay [1,4)"
  verdict outcome = verdict::ok;       ///< failed where an error is not at most its bound, or where a number is not finite
  double error = 0;                    ///< ‖yours - right‖₂ / max(‖right‖₂, 1e-30 √n)
  double largest = 0;                  ///< max |yours - right|
  double bound = 0;                    ///< on the error
  std::string note = {};               ///< why it was skipped; what the bound or the right value rests on
  on_trial whose = on_trial::run;      ///< yours
  std::string right_from = {};         ///< whose the right values are, in words
  std::vector<part_report> parts = {};         ///< its heads and sequences, where there are several
  std::optional<worst_element> worst = {};     ///< where something was compared, and failed
  std::string diagnosis = {};          ///< the usual mistake that fits; empty if none does
};

/// All tensors of a case.
struct case_report {
  std::string name;                  ///< of the case
  std::vector<tensor_report> rows;   ///< in the order of case_fields
};

/// How many rows fared how.
struct tally {
  std::size_t passed = 0;   ///< rows that are ok
  std::size_t failed = 0;   ///< rows that failed
  std::size_t skipped = 0;  ///< rows that nothing was compared for
};

/// Counts the rows of some cases.
inline tally count(std::span<case_report const> cases) {
  tally sums;
  for (auto const& one : cases) {
    for (auto const& row : one.rows) {
      (row.outcome == verdict::ok ? sums.passed : row.outcome == verdict::failed ? sums.failed : sums.skipped) += 1;
    }
  }
  return sums;
}

/// Was anything compared, and did nothing fail? Nothing compared is nothing passed.
inline bool passed(case_report const& report) {
  tally const sums = count({&report, 1});
  return sums.passed > 0 && sums.failed == 0;
}

/// Turns a tensor that was not compared into a failure. @param names of tensors that had to be
inline void require(case_report& report, std::span<std::string const> names) {
  for (auto const& name : names) {
    auto const row = std::find_if(report.rows.begin(), report.rows.end(), [&](auto const& r) { return r.tensor == name; });
    if (row == report.rows.end()) {
      report.rows.push_back({name, verdict::failed, 0, 0, 0, "required, but not in the file"});
    } else if (row->outcome == verdict::skipped) {
      row->outcome = verdict::failed;
      row->note = "required, but not compared: " + row->note;
    }
  }
}

/// The part whose error is the largest multiple of its bound, among those that are held; none where there are no parts.
inline part_report const* worst_part(tensor_report const& row) {
  part_report const* worst = nullptr;
  for (auto const& part : row.parts) {
    if (part.held && (worst == nullptr || !(part.error * worst->bound <= worst->error * part.bound))) worst = &part;
  }
  return worst;
}

namespace detail {

/// "3.2e-07"
inline std::string short_number(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1e", x);
  return text.data();
}

/// "-0.0123456"
inline std::string value_text(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.7g", x);
  return text.data();
}

inline std::string outcome_text(tensor_report const& row) {
  if (row.outcome == verdict::skipped) return "skipped: " + row.note;
  std::string const word = row.outcome == verdict::ok ? "ok" : "FAIL";
  return row.note.empty() ? word : word + "  " + row.note;
}

inline bool was_compared(tensor_report const& row) { return row.outcome == verdict::ok || row.worst.has_value(); }

/// "4.1e-07 head 3"
inline std::string part_text(tensor_report const& row) {
  auto const* const part = was_compared(row) ? worst_part(row) : nullptr;
  if (part == nullptr) return "-";
  return short_number(part->error) + (part->is_head ? " head " : " seq. ") + std::to_string(part->index);
}

/// What a row that failed adds below itself.
inline std::vector<std::string> explanation(tensor_report const& row) {
  std::vector<std::string> lines;
  if (row.outcome != verdict::failed || !row.worst) return lines;
  auto const& worst = *row.worst;
  std::string const whose = row.whose == on_trial::file ? "the file's" : "this run's";
  auto const place = text_of(worst.place);
  lines.push_back("worst: " + (place.empty() ? "" : place + ": ") + "yours " + value_text(worst.yours) + " (" + whose + "), right " +
                  value_text(worst.right) + " (" + row.right_from + ")");
  if (!row.diagnosis.empty()) lines.push_back("fits:  " + row.diagnosis);
  return lines;
}

}  // namespace detail

/// Prints the rows of some cases as one table, every column as wide as its widest cell. `worst part` is the head or the
/// sequence that comes nearest its bound, or passes it farthest.
inline void print_table(std::ostream& out, std::span<case_report const> cases) {
  std::size_t widths[] = {4, 6, 10, 10, 10, 7};
  auto const line = [&](std::vector<std::string> const& cells, std::string const& outcome) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      out << cells[i] << std::string(widths[i] - (std::min)(widths[i], cells[i].size()) + 2, ' ');
    out << outcome << '\n';
  };
  for (auto const& one : cases) {
    for (auto const& row : one.rows) {
      widths[0] = (std::max)(widths[0], one.name.size());
      widths[1] = (std::max)(widths[1], row.tensor.size());
      widths[3] = (std::max)(widths[3], detail::part_text(row).size());
    }
  }
  line({"case", "tensor", "rel. error", "worst part", "max. error", "bound"}, "verdict");
  for (auto const& one : cases) {
    for (auto const& row : one.rows) {
      auto const number = [&](double x) { return detail::was_compared(row) ? detail::short_number(x) : std::string("-"); };
      line({one.name, row.tensor, number(row.error), detail::part_text(row), number(row.largest), number(row.bound)},
           detail::outcome_text(row));
      for (auto const& more : detail::explanation(row)) out << std::string(widths[0] + 4, ' ') << more << '\n';
    }
  }
}

/// The table as text: for the message of a test that fails.
inline std::string text_of(case_report const& report) {
  std::ostringstream text;
  print_table(text, {&report, 1});
  return text.str();
}

}  // namespace palimpsa::io
