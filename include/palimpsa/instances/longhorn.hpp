#pragma once
/// @file
/// Longhorn as a point of the family.

#include "palimpsa/rule.hpp"

namespace palimpsa {

/// η ← (1 - g⊗k²) ⊙ (αη) + (g⊙v) kᵀ,  g = β/(1 + β kᵀk).  The exact gain first, the cross terms of the transition dropped after.
/// Liu et al., "Longhorn: State Space Models are Amortized Online Learners", 2024, arXiv 2407.14207.
using Longhorn = rule<memory::nothing, evidence::diagonal, gain::exact>;

}  // namespace palimpsa
