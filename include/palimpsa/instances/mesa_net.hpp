#pragma once
/// @file
/// MesaNet as a point of the family.

#include "palimpsa/rule.hpp"

namespace palimpsa {

/// η ← αη + u kᵀ,  J ← αJ + β k kᵀ,  o = scale · η (diag(prior) + J)⁻¹ q.  Exact Bayes: nothing is dropped.
/// von Oswald et al., "MesaNet: Sequence Modeling by Locally Optimal Test-Time Training", 2025, arXiv 2506.05233.
using MesaNet = rule<memory::full, evidence::full, gain::exact>;

}  // namespace palimpsa
