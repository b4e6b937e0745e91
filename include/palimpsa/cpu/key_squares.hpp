#pragma once
/// @file
/// Σ_i k_i² of a token, and what is left of it without each key: the same for all rows of a memory of nothing, so a head works it out
/// once (rows that did it again took Longhorn a third of its time).

#include <cstdint>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/recurrence.hpp"
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
    square_ = memory.take<palimpsa::detail::apart<Scalar>>(wanted ? tokens : 0);
  }

  /// Works token t out.
  void look(std::int64_t t, Scalar const* key) {
    if constexpr (wanted) {
      using apart = palimpsa::detail::apart<Scalar>;
      apart const square = serial_lanes{static_cast<int>(keys_)}.template sum<apart>(
          [=](int j, apart sum) { return sum.with(key[j] * key[j]); });
      for (std::int64_t j = 0; j < keys_; ++j) others_[t * keys_ + j] = square.without(key[j], key[j]);
      square_[t] = square;
    } else {
      static_cast<void>(t);
      static_cast<void>(key);
    }
  }

  /// Token t with what is known of its keys.
  PALIMPSA_INLINE token<Scalar> with(token<Scalar> x, std::int64_t t) const {
    if constexpr (wanted) {
      x.others = others_ + t * keys_;
      x.most = square_[t].most;
      x.rest = square_[t].rest;
    } else {
      static_cast<void>(t);
    }
    return x;
  }

 private:
  std::int64_t keys_ = 0;
  Scalar* others_ = nullptr;
  palimpsa::detail::apart<Scalar>* square_ = nullptr;
};

}  // namespace palimpsa::cpu
