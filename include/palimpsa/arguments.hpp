#pragma once
/// @file
/// What a caller hands over. The names are those of the contract and of the case files.
///
/// B batch, T tokens, HK key heads, HV value heads (a multiple of HK; value head h reads key head h / (HV/HK)), K and V from 1 to 256.
/// N = B, or the number of packed sequences (then B = 1). Absent tensors are default-constructed views.

#include "palimpsa/storage.hpp"
#include "palimpsa/view.hpp"

namespace palimpsa {

/// What a scan reads. Storage is the type of q, k, v, out; Scalar that of everything else and of the arithmetic.
template <class Storage, class Scalar = typename storage<Storage>::scalar>
struct scan_inputs {
  using storage_type = Storage;  ///< of q, k, v, out
  using scalar_type = Scalar;    ///< of the arithmetic

  view<Storage const> q;                ///< queries [B,T,HK,K]
  view<Storage const> k;                ///< keys [B,T,HK,K]; βk² must be finite
  view<Storage const> v;                ///< values [B,T,HV,V]
  view<Scalar const> beta;              ///< likelihood precision ≥ 0, [B,T,HV] or [B,T,HV,V]; absent = 1
  view<Scalar const> log_decay;         ///< natural logarithm of the gate, ≤ 0, shape by gate_scope; absent = 0
  view<Scalar const> prior;             ///< prior precision > 0, [HV]; full memory also [HV,K]; required iff a precision is kept
  view<Scalar const> initial_eta;       ///< η before the first token [N,HV,V,K]; absent = 0
  view<Scalar const> initial_evidence;  ///< J before the first token [N,HV,V,K], or [N,HV,K,K] symmetric; absent = 0
  index_view cu_seqlens;                ///< boundaries of packed sequences [N+1], from 0 to T, never falling; absent = not packed
  double scale = 1;                     ///< multiplies the read
};

/// What a scan writes. out is required; the rest is optional. final_* may be the memory of initial_*.
template <class Storage, class Scalar = typename storage<Storage>::scalar>
struct scan_outputs {
  view<Storage> out;            ///< scale · read [B,T,HV,V]
  view<Scalar> out_variance;    ///< scale² · variance of the read [B,T,HV,V]; rules that keep a precision
  view<Scalar> final_eta;       ///< η after the last token [N,HV,V,K]
  view<Scalar> final_evidence;  ///< J after the last token, shaped as initial_evidence
};

/// Derivatives of a loss with respect to what a scan wrote; an absent one is zero.
template <class Storage, class Scalar = typename storage<Storage>::scalar>
struct scan_cotangents {
  view<Storage const> grad_out;           ///< [B,T,HV,V]
  view<Scalar const> grad_out_variance;   ///< [B,T,HV,V]; diagonal memory only
  view<Scalar const> grad_final_eta;      ///< [N,HV,V,K]
  view<Scalar const> grad_final_evidence; ///< as final_evidence
};

/// Derivatives with respect to what a scan read; only those present are written.
template <class Storage, class Scalar = typename storage<Storage>::scalar>
struct scan_gradients {
  view<Storage> grad_q;                ///< [B,T,HK,K], summed over the value heads of a key head
  view<Storage> grad_k;                ///< [B,T,HK,K], summed over the value heads of a key head
  view<Storage> grad_v;                ///< [B,T,HV,V]
  view<Scalar> grad_beta;              ///< shaped as beta (summed over V when beta is [B,T,HV])
  view<Scalar> grad_log_decay;         ///< shaped as log_decay
  view<Scalar> grad_prior;             ///< shaped as prior, summed over tokens and sequences
  view<Scalar> grad_initial_eta;       ///< [N,HV,V,K]
  view<Scalar> grad_initial_evidence;  ///< as initial_evidence
};

/// What `step` reads and updates: n new tokens (usually one) for each of B rows, states in a pool.
template <class Storage, class Scalar = typename storage<Storage>::scalar>
struct step_arguments {
  using storage_type = Storage;  ///< of q, k, v, out
  using scalar_type = Scalar;    ///< of the arithmetic

  view<Storage const> q;         ///< [B,n,HK,K]
  view<Storage const> k;         ///< [B,n,HK,K]
  view<Storage const> v;         ///< [B,n,HV,V]
  view<Scalar const> beta;       ///< [B,n,HV] or [B,n,HV,V]; absent = 1
  view<Scalar const> log_decay;  ///< by gate_scope, T = n; absent = 0
  view<Scalar const> prior;      ///< as in scan_inputs
  view<Scalar> eta;              ///< pool of states [slots,HV,V,K], updated in place
  view<Scalar> evidence;         ///< pool of evidence [slots,HV,V,K] or [slots,HV,K,K]; required iff a precision is kept
  index_view slot_in;            ///< [B] where each row's state is read; -1 = inert row: output zero, no access; absent = row b uses slot b
  index_view slot_out;           ///< [B] where it is written after the last token, or [B,n] after each token (snapshots); -1 = not kept;
                                 ///< absent = slot_in
  view<Storage> out;             ///< [B,n,HV,V]
  view<Scalar> out_variance;     ///< [B,n,HV,V], optional; rules that keep a precision
  double scale = 1;              ///< multiplies the read
};

}  // namespace palimpsa
