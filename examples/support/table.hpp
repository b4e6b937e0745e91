#pragma once
/// @file
/// What the examples print: aligned tables, and claims that turn into the exit code.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace example {

/// x in the given printf form: text(0.5, "%.3f").
inline std::string text(double x, char const* form = "%.4f") {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, form, x);
  return buffer;
}

/// Rows of cells, printed with every column as wide as its widest cell: the first to the left, the others to the right.
class table {
 public:
  /// The first row.
  explicit table(std::vector<std::string> headings) : rows_{std::move(headings)} {}

  /// One more row.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// To standard output, with an empty line after it.
  void print() const {
    std::vector<std::size_t> widths;
    for (auto const& row : rows_) {
      widths.resize((std::max)(widths.size(), row.size()), 0);
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = (std::max)(widths[c], row[c].size());
    }
    for (auto const& row : rows_) {
      std::string line;
      for (std::size_t c = 0; c < row.size(); ++c) {
        std::string const pad(widths[c] - row[c].size(), ' ');
        line += c == 0 ? "  " + row[c] + pad : "  " + pad + row[c];
      }
      std::cout << line << '\n';
    }
    std::cout << '\n';
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// What an example says about what it printed. One claim that fails makes the exit code 1.
class claims {
 public:
  /// Prints the sentence with its verdict.
  void that(bool holds, std::string const& sentence) {
    std::cout << (holds ? "  holds  " : "  FAILS  ") << sentence << '\n';
    failed_ = failed_ || !holds;
  }
  /// 0 if every claim held.
  int exit_code() const { return failed_ ? 1 : 0; }

 private:
  bool failed_ = false;
};

}  // namespace example
