#pragma once
/// @file
/// DiagonalKalman as a point of the family.

#include "palimpsa/rule.hpp"

namespace palimpsa {

/// μ = m + s R⁻¹k (u - β k·m),  s = 1/(1 + β kᵀR⁻¹k),  J ← αJ + β⊗k².  The exact mean under a diagonal posterior,
/// the optimum of the variational free energy over diagonal precisions; no published model.
using DiagonalKalman = rule<memory::diagonal, evidence::full, gain::exact>;

}  // namespace palimpsa
