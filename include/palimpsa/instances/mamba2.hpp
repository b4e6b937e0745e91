#pragma once
/// @file
/// Mamba2 as a point of the family.

#include "palimpsa/rule.hpp"

namespace palimpsa {

/// η ← αη + u kᵀ,  o = scale · η q.  Palimpsa with an immovable prior. Dao and Gu, "Transformers are SSMs", ICML 2024,
/// arXiv 2405.21060.
using Mamba2 = rule<memory::nothing, evidence::nothing, gain::plain>;

/// η ← γ_h η + u kᵀ with one constant gate per head. Sun et al., "Retentive Network", 2023, arXiv 2307.08621.
using RetNet = rule<memory::nothing, evidence::nothing, gain::plain, forget::constant>;

/// η ← η + u kᵀ: nothing is forgotten, nothing corrected. Katharopoulos et al., "Transformers are RNNs", ICML 2020, arXiv 2006.16236.
using LinearAttention = rule<memory::nothing, evidence::nothing, gain::plain, forget::none>;

}  // namespace palimpsa
