#pragma once
/// @file
/// What a verification says: one row per tensor, printed as an aligned table, and the tally of all rows.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// How a tensor fared.
enum class verdict { ok, failed, skipped };

/// One tensor of a case, held against its right value.
struct tensor_report {
  std::string tensor;              ///< its name in the case file; grad_log_decay also by band, "grad_log_decay [1,4)"
  verdict outcome = verdict::ok;   ///< failed where the error is not at most the bound, or where a number is not finite
  double error = 0;                ///< ‖x - right‖₂ / max(‖right‖₂, 1e-30 √n)
  double largest = 0;              ///< max |x - right|
  double bound = 0;                ///< on the error
  std::string note;                ///< why it was skipped; what the bound or the right value rests on
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

namespace detail {

/// "3.2e-07"
inline std::string short_number(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1e", x);
  return text.data();
}

inline std::string outcome_text(tensor_report const& row) {
  if (row.outcome == verdict::skipped) return "skipped: " + row.note;
  std::string const word = row.outcome == verdict::ok ? "ok" : "FAIL";
  return row.note.empty() ? word : word + "  " + row.note;
}

}  // namespace detail

/// Prints the rows of some cases as one table, every column as wide as its widest cell.
inline void print_table(std::ostream& out, std::span<case_report const> cases) {
  std::size_t case_width = 4, tensor_width = 6;
  for (auto const& one : cases) {
    if (!one.rows.empty()) case_width = (std::max)(case_width, one.name.size());
    for (auto const& row : one.rows) tensor_width = (std::max)(tensor_width, row.tensor.size());
  }
  auto const padded = [](std::string const& text, std::size_t width) {
    return text + std::string(width - (std::min)(width, text.size()), ' ') + "  ";
  };
  auto const line = [&](std::string const& name, std::string const& tensor, std::string const& error,
                        std::string const& largest, std::string const& bound, std::string const& outcome) {
    out << padded(name, case_width) << padded(tensor, tensor_width) << padded(error, 10) << padded(largest, 10)
        << padded(bound, 7) << outcome << '\n';
  };
  line("case", "tensor", "rel. error", "max. error", "bound", "verdict");
  for (auto const& one : cases) {
    for (auto const& row : one.rows) {
      auto const number = [&](double x) {
        return row.outcome == verdict::skipped ? std::string("-") : detail::short_number(x);
      };
      line(one.name, row.tensor, number(row.error), number(row.largest), number(row.bound), detail::outcome_text(row));
    }
  }
}

}  // namespace palimpsa::io
