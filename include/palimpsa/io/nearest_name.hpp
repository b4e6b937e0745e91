#pragma once
/// @file
/// The name that somebody meant who wrote another.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/case_data.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {
namespace detail {

/// Letters to insert, drop or change on the way from one word to the other.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t const changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], (std::min)({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

/// Names that other programs use for the tensors of a case.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 30> other_names{
    {{"o", "out"},          {"y", "out"},           {"output", "out"},        {"outputs", "out"},
     {"query", "q"},        {"key", "k"},           {"value", "v"},           {"b", "beta"},
     {"g", "log_decay"},    {"gate", "log_decay"},  {"gk", "log_decay"},      {"decay", "log_decay"},
     {"log_alpha", "log_decay"}, {"h0", "initial_eta"}, {"initial_state", "initial_eta"}, {"ht", "final_eta"},
     {"final_state", "final_eta"}, {"state", "final_eta"}, {"variance", "out_variance"}, {"do", "grad_out"},
     {"dout", "grad_out"},  {"dq", "grad_q"},       {"dk", "grad_k"},         {"dv", "grad_v"},
     {"dbeta", "grad_beta"}, {"db", "grad_beta"},   {"dg", "grad_log_decay"}, {"dh0", "grad_initial_eta"},
     {"dht", "grad_final_eta"}, {"cu_seq_lens", "cu_seqlens"}}};

}  // namespace detail

/// The tensor of a case that this name stands for in other programs, or is misspelt for; empty if none is near.
inline std::string_view nearest_name(std::string_view given) {
  for (auto const& [other, name] : detail::other_names)
    if (other == given) return name;
  std::string_view nearest;
  std::size_t least = given.size() < 6 ? 2 : given.size() / 3 + 1;  // fewer changes than these
  auto const consider = [&](std::string_view name) {
    std::size_t const changes = detail::edit_distance(given, name);
    if (changes < least) least = changes, nearest = name;
  };
  if (given.size() > 2) {
    for (auto const& field : case_fields) consider(field.name);
    consider("cu_seqlens");
  }
  return nearest;
}

}  // namespace palimpsa::io
