#pragma once
/// @file
/// Which elements of a tensor share a row of a report, and when a tensor cannot have one.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/bounds.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/layout.hpp"
#include "palimpsa/io/tensor.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {
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
inline std::vector<selection> selections(std::string_view name, std::size_t size, case_file::reals const& log_decay) {
  std::vector<selection> rows{{std::string(name), std::vector<std::size_t>(size), true}};
  std::iota(rows.front().elements.begin(), rows.front().elements.end(), std::size_t{0});
  if (name != "grad_log_decay" || !log_decay) return rows;
  for (auto const& band : gate_bands) {
    selection row{std::string(name) + " " + std::string(band.text), {}, false};
    for (std::size_t i = 0; i < log_decay->values.size(); ++i) {
      double const size_of_gate = std::abs(log_decay->values[i]);
      if (size_of_gate >= band.lower && size_of_gate < band.upper) row.elements.push_back(i);
    }
    if (!row.elements.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

/// (G + Gᵀ)/2 over the last two axes, which are equal.
inline void symmetrise(std::vector<double>& values, std::size_t n) {
  for (std::size_t matrix = 0; n > 0 && matrix + n * n <= values.size(); matrix += n * n) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        double &a = values[matrix + i * n + j], &b = values[matrix + j * n + i];
        a = b = 0.5 * a + 0.5 * b;
      }
    }
  }
}

/// Why a right value of this shape cannot be compared, and the usual reason if it has one.
inline std::string shape_fault(std::string_view name, std::vector<std::int64_t> const& expected,
                               std::vector<std::int64_t> const& given) {
  std::string text = "shape: expected " + shape_text(expected) + ", given " + shape_text(given);
  if (expected.size() == 4 && given.size() == 4) {
    auto const& e = expected;
    bool const states = axes_of(name) == tensor_axes::states;
    if (!states && given == std::vector<std::int64_t>{e[0], e[2], e[1], e[3]}) text += ": head-major, where token-major is meant";
    if (states && given == std::vector<std::int64_t>{e[0], e[1], e[3], e[2]}) text += ": transposed";
  }
  return text;
}

}  // namespace detail
}  // namespace palimpsa::io
