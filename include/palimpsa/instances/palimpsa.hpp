#pragma once
/// @file
/// Palimpsa as a point of the family.

#include "palimpsa/rule.hpp"

namespace palimpsa {

/// η ← αη + u kᵀ,  J ← αJ + β⊗k²,  o = scale · Σ_j η_j q_j/(prior + J_j).
/// A diagonal posterior; the cross terms of k kᵀ are dropped in the precision and in the mean (docs/derivation.md). "Learning to Remember, Learn, and Forget in
/// Attention-Based Models", arXiv 2602.09075.
using Palimpsa = rule<memory::diagonal, evidence::diagonal, gain::elementwise>;

}  // namespace palimpsa
