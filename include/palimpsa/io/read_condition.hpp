#pragma once
/// @file
/// How far reads cancel: Σ_j |μ_ij q_j| over |Σ_j μ_ij q_j|, the condition of a sum, for problems of one or two tokens. (In longer
/// ones norms run over many reads, of which few cancel.) A read is linear in the query, so reads of one-hot queries are the
/// columns of the mean, for any rule.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/condition.hpp"
#include "palimpsa/io/mistakes.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// The longest problem whose reads carry their condition.
inline constexpr std::int64_t few_tokens = 2;

/// Σ_j |scale μ_ij q_j| for every element of out; empty where no sequence has one or two tokens, or where K reads take too long.
inline std::vector<double> read_magnitudes(case_file const& given, case_runner const& reference) {
  auto const sequences = detail::sequences_of(given);
  bool const few = std::any_of(sequences.begin(), sequences.end(), [](detail::token_range const& s) {
    return s.last > s.first && s.last - s.first <= few_tokens;
  });
  std::int64_t const K = given.q->shape[3], HK = given.q->shape[2], HV = given.v->shape[2], V = given.v->shape[3];
  double const work = static_cast<double>(given.v->values.size()) * static_cast<double>(K * K);
  if (!few || HV == 0 || work > 0x1p30) return {};
  case_file probe = given;
  for (auto const cotangent : cotangent_names) (probe.*member_named(cotangent)).reset();
  std::vector<double> sums(given.v->values.size());
  auto const keys = static_cast<std::size_t>(K);
  for (std::size_t j = 0; j < keys; ++j) {
    for (std::size_t i = 0; i < probe.q->values.size(); ++i) probe.q->values[i] = i % keys == j ? 1 : 0;
    auto const columns = reference(probe, {}).at("out").values;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      auto const place = static_cast<std::int64_t>(i) / V, token = place / HV, head = place % HV;
      auto const query = static_cast<std::size_t>(token * HK + head / (HV / HK)) * keys + j;
      sums[i] += std::abs(columns[i] * given.q->values[query]);
    }
  }
  return sums;
}

}  // namespace palimpsa::io
