#pragma once
/// @file
/// Σ_i k_i² of a token, and what is left of it without each key: the same for all rows of a memory of nothing, so a head works it out
/// once.

#include <algorithm>
#include <cstdint>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/exact_write.hpp"
#include "palimpsa/lanes.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// The squares of the tokens of a tile or chunk, for rules that look at them.
template <class Rule, class Scalar>
class key_squares {
 public:
  /// Whether rows of the rule look at them.
  static constexpr bool wanted = palimpsa::detail::exact_write<Rule> && !Rule::keeps_diagonal;

  /// Takes its arrays from the arena.
  void take(arena& memory, std::int64_t keys, std::int64_t tokens) {
    keys_ = keys;
    others_ = memory.take<Scalar>(wanted ? tokens * keys : 0);
    rest_key_ = memory.take<Scalar>(wanted && whole ? tokens * keys : 0);
    rest_query_ = memory.take<Scalar>(wanted && whole ? tokens * keys : 0);
    square_ = memory.take<apart>(wanted ? tokens : 0);
    lead_ = memory.take<int>(wanted ? tokens : 0);
  }

  /// Works token t out.
  void look(std::int64_t t, Scalar const* key, Scalar const* query) {
    if constexpr (wanted) {
      apart const square = serial_lanes{static_cast<int>(keys_)}.template sum<apart>(
          [=](int j, apart sum) { return sum.with(key[j] * key[j]); });
      square_[t] = square;
      lead_[t] = -1;
      for (std::int64_t j = 0; j < keys_; ++j) others_[t * keys_ + j] = square.without(key[j], key[j]);
      if constexpr (whole) {
        std::copy_n(key, keys_, rest_key_ + t * keys_);
        std::copy_n(query, keys_, rest_query_ + t * keys_);
        if (!(square.rest < square.most)) return;
        for (std::int64_t j = 0; j < keys_; ++j)
          if (key[j] * key[j] == square.most) lead_[t] = static_cast<int>(j);
        if (lead_[t] >= 0) rest_key_[t * keys_ + lead_[t]] = rest_query_[t * keys_ + lead_[t]] = 0;
      }
    } else {
      static_cast<void>(t), static_cast<void>(key), static_cast<void>(query);
    }
  }

  /// Token t with what is known of its keys.
  PALIMPSA_INLINE auto with(token<Scalar> x, std::int64_t t) const {
    if constexpr (wanted) {
      return known_token<Scalar>{x, square_[t].most, square_[t].rest, others_ + t * keys_, lead_[t], rest_key_ + t * keys_,
                                 rest_query_ + t * keys_};
    } else {
      static_cast<void>(t);
      return x;
    }
  }

 private:
  using apart = palimpsa::detail::apart<Scalar>;
  static constexpr bool whole = Rule::evidence_type::sees_all;

  std::int64_t keys_ = 0;
  Scalar *others_ = nullptr, *rest_key_ = nullptr, *rest_query_ = nullptr;
  apart* square_ = nullptr;
  int* lead_ = nullptr;
};

}  // namespace palimpsa::cpu
