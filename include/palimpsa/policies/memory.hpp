#pragma once
/// @file
/// Axis 1, memory: what a rule remembers of the precision Λ = Λ_prior + J. It fixes the shape of the state and the read.

namespace palimpsa::memory {

/// Nothing is remembered: R = 1 before every write. State: eta [N,HV,V,K]. Read: o = scale · eta q.
struct nothing {};

/// The diagonal, one precision per cell: R_j = prior + αJ_j. State: eta and J [N,HV,V,K]; prior [HV].
/// Read: o = scale · Σ_j eta_j q_j / (prior + J_j); the variance of the read is scale² · Σ_j q_j² / (prior + J_j).
struct diagonal {};

/// The whole matrix, shared by the rows of a head: Λ = diag(prior) + J. State: eta [N,HV,V,K], J [N,HV,K,K]; prior [HV] or [HV,K].
/// Read: o = scale · eta Λ⁻¹ q; the variance of the read is scale² · qᵀ Λ⁻¹ q, the same for every row.
struct full {};

}  // namespace palimpsa::memory
