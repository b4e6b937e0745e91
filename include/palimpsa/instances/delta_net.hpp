#pragma once
/// @file
/// The delta rules as points of the family: forget everything about the precision, correct with the whole prediction.

#include "palimpsa/rule.hpp"

namespace palimpsa {

/// m = αη,  η ← m + g (v - m k) kᵀ,  g = β.  Yang, Kautz and Hatamizadeh, "Gated Delta Networks", ICLR 2025, arXiv 2412.06464.
using GatedDeltaNet = rule<memory::nothing, evidence::full, gain::plain>;

/// Gated DeltaNet with the exact (implicit) gain g = β/(1 + β kᵀk), stable for every β and key.
using ImplicitGatedDeltaNet = rule<memory::nothing, evidence::full, gain::exact>;

/// η ← η + β (v - η k) kᵀ, no gate.  Schlag, Irie and Schmidhuber, ICML 2021, arXiv 2102.11174; Yang et al., NeurIPS 2024, arXiv 2406.06484.
using DeltaNet = rule<memory::nothing, evidence::full, gain::plain, forget::none>;

/// DeltaNet with the exact (implicit) gain g = β/(1 + β kᵀk).
using ImplicitDeltaNet = rule<memory::nothing, evidence::full, gain::exact, forget::none>;

}  // namespace palimpsa
