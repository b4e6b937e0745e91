#pragma once
/// @file
/// One tensor against its right values: as a whole, head by head and sequence by sequence. One norm over a tensor hides heads and
/// sequences of small values, so each is held to the bound on its own norm, wherever that is above 2⁻²⁰ of the largest.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/bounds.hpp"
#include "palimpsa/io/layout.hpp"
#include "palimpsa/io/report.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// The bound of some elements: of how many, of which right norm, and of what (nothing = the whole tensor).
using bound_of_part = std::function<double(std::size_t count, double norm, part_report const* part)>;

namespace detail {

/// Sums over the elements of a part.
struct part_sums {
  std::size_t count = 0;
  double gap = 0, norm = 0;
};

/// Parts by heads or by sequences; none where there is but one.
inline void add_parts(std::vector<part_report>& all, bool is_head, std::vector<part_sums> const& sums, double unit,
                      bound_of_part const& bound) {
  if (sums.size() < 2) return;
  double largest = 0;
  for (auto const& part : sums) largest = (std::max)(largest, std::sqrt(part.norm));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    auto const& part = sums[i];
    if (part.count == 0) continue;
    double const norm = std::sqrt(part.norm);
    part_report row{is_head, static_cast<std::int64_t>(i), 0, 0, norm > 0x1p-20 * largest};
    row.error = part.gap == 0 ? 0 : std::sqrt(part.gap) / (std::max)(norm, 1e-300);
    row.bound = bound(part.count, norm * unit, &row);
    all.push_back(row);
  }
}

}  // namespace detail

/// Errors of all parts of a tensor, finite on both sides.
inline std::vector<part_report> parts_of(tensor_layout const& layout, std::span<double const> yours,
                                         std::span<double const> right, bound_of_part const& bound) {
  double unit = 0;
  for (std::size_t i = 0; i < right.size(); ++i) unit = (std::max)({unit, std::abs(right[i]), std::abs(yours[i])});
  std::vector<detail::part_sums> heads(static_cast<std::size_t>(layout.heads()));
  std::vector<detail::part_sums> sequences(static_cast<std::size_t>(layout.sequences()));
  std::vector<part_report> all;
  if (unit == 0 || (heads.size() < 2 && sequences.size() < 2)) return all;
  for (std::size_t i = 0; i < right.size(); ++i) {
    auto const place = layout.place(i);
    double const r = right[i] / unit, gap = yours[i] / unit - r;
    auto const add = [&](std::vector<detail::part_sums>& parts, std::int64_t which) {
      if (which < 0 || which >= static_cast<std::int64_t>(parts.size())) return;
      auto& part = parts[static_cast<std::size_t>(which)];
      part.gap += gap * gap, part.norm += r * r, ++part.count;
    };
    add(heads, place.head);
    add(sequences, place.sequence);
  }
  detail::add_parts(all, true, heads, unit, bound);
  detail::add_parts(all, false, sequences, unit, bound);
  return all;
}

/// The element of the largest |yours - right|, or the first that is not finite in yours, or else in right.
inline std::optional<worst_element> worst_of(tensor_layout const& layout, std::span<double const> yours,
                                             std::span<double const> right, std::span<std::size_t const> elements) {
  if (elements.empty()) return std::nullopt;
  std::size_t worst = elements.front();
  double largest = -1;
  for (std::size_t const i : elements) {
    double const gap = !std::isfinite(yours[i]) ? HUGE_VAL : !std::isfinite(right[i]) ? 1e308 : std::abs(yours[i] - right[i]);
    if (gap > largest) largest = gap, worst = i;
  }
  return worst_element{layout.place(worst), yours[worst], right[worst]};
}

}  // namespace palimpsa::io
