#pragma once
/// @file
/// What the verification of a rule has to know of it.

#include <type_traits>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/rule.hpp"
#include "palimpsa/traits.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// By this bounds are chosen.
struct rule_facts {
  bool solves = false;           ///< a linear system a token (a full memory)
  bool triangular = false;       ///< its chunked form solves a unit-triangular system
  bool exact_gain = false;       ///< with the exact gain in it
  bool keeps_precision = false;  ///< it has a variance, and evidence
};

/// The facts of a rule.
template <any_rule Rule> constexpr rule_facts facts_of() {
  bool const exact = std::is_same_v<typename Rule::gain_type, gain::exact>;
  return {Rule::keeps_full, chunked_form<Rule> == chunk_form::wy, exact, Rule::keeps_precision};
}

}  // namespace palimpsa::io
