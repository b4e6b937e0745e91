#pragma once
/// @file
/// What a caller hands over. The names are those of the contract and of the case files.
///
/// B batch, T tokens, HK key heads, HV value heads (a multiple of HK; value head h reads key head h / (HV/HK)), K and V from 1 to 256.
/// N = B, or the number of packed sequences (then B = 1). Absent tensors are default-constructed views.

#include <type_traits>

#include "palimpsa/storage.hpp"
#include "palimpsa/view.hpp"

namespace palimpsa {

namespace stored_as {

/// The arithmetic of tensors that are stored as Storage, unless the caller asks for another.
template <class Storage>
struct arithmetic {
  static_assert(stored<Storage>,
                "palimpsa: q, k, v, out must have a stored type: float, double, Eigen::bfloat16 or Eigen::half (storage_eigen.hpp), or a "
                "type with a specialisation of palimpsa::storage");
  using type = typename storage<Storage>::scalar;  ///< float or double
};

/// What every call of a storage and a scalar has to be.
template <class Storage, class Scalar>
struct checked_types : arithmetic<Storage> {
  static_assert(std::is_same_v<Scalar, float> || std::is_same_v<Scalar, double>,
                "palimpsa: the library calculates in float or double");
};

}  // namespace stored_as

/// What a scan reads. Storage is the type of q, k, v, out; Scalar that of everything else and of the arithmetic.
template <class Storage, class Scalar = typename stored_as::arithmetic<Storage>::type>
struct scan_inputs {
  static_assert(sizeof(stored_as::checked_types<Storage, Scalar>) > 0);

  using storage_type = Storage;  ///< of q, k, v, out
  using scalar_type = Scalar;    ///< of the arithmetic

  view<Storage const> q;                ///< queries [B,T,HK,K]
  view<Storage const> k;                ///< keys [B,T,HK,K]; βk² must be finite
  view<Storage const> v;                ///< values [B,T,HV,V]
  view<Scalar const> beta;              ///< likelihood precision ≥ 0, [B,T,HV] or [B,T,HV,V]; absent = 1
  view<Scalar const> log_decay;         ///< natural logarithm of the gate, ≤ 0, shape by gate_scope; absent = 0
  view<Scalar const> prior;             ///< prior precision > 0, normal, [HV]; full memory also [HV,K]; required iff a precision is kept
  view<Scalar const> initial_eta;       ///< η before the first token [N,HV,V,K]; absent = 0
  view<Scalar const> initial_evidence;  ///< J ≥ 0 before the first token [N,HV,V,K], or [N,HV,K,K] symmetric; absent = 0
  index_view cu_seqlens;                ///< boundaries of packed sequences [N+1], from 0 to T, never falling; absent = not packed
  double scale = 1;                     ///< multiplies the read
};

/// What a scan writes. out is required; the rest is optional. final_* may be the memory of initial_*.
template <class Storage, class Scalar = typename stored_as::arithmetic<Storage>::type>
struct scan_outputs {
  static_assert(sizeof(stored_as::checked_types<Storage, Scalar>) > 0);

  view<Storage> out;            ///< scale · read [B,T,HV,V]
  view<Scalar> out_variance;    ///< scale² · variance of the read [B,T,HV,V]; rules that keep a precision
  view<Scalar> final_eta;       ///< η after the last token [N,HV,V,K]
  view<Scalar> final_evidence;  ///< J after the last token, shaped as initial_evidence
};

/// Derivatives of a loss with respect to what a scan wrote; an absent one is zero.
template <class Storage, class Scalar = typename stored_as::arithmetic<Storage>::type>
struct scan_cotangents {
  static_assert(sizeof(stored_as::checked_types<Storage, Scalar>) > 0);

  view<Storage const> grad_out;           ///< [B,T,HV,V]
  view<Scalar const> grad_out_variance;   ///< [B,T,HV,V]; diagonal memory only
  view<Scalar const> grad_final_eta;      ///< [N,HV,V,K]
  view<Scalar const> grad_final_evidence; ///< as final_evidence
};

/// Derivatives with respect to what a scan read; only those present are written.
template <class Storage, class Scalar = typename stored_as::arithmetic<Storage>::type>
struct scan_gradients {
  static_assert(sizeof(stored_as::checked_types<Storage, Scalar>) > 0);

  view<Storage> grad_q;                ///< [B,T,HK,K], summed over the value heads of a key head
  view<Storage> grad_k;                ///< [B,T,HK,K], summed over the value heads of a key head
  view<Storage> grad_v;                ///< [B,T,HV,V]
  view<Scalar> grad_beta;              ///< shaped as beta, or [B,T,HV], summed over V, where beta is one a head
  view<Scalar> grad_log_decay;         ///< shaped as log_decay
  view<Scalar> grad_prior;             ///< shaped as prior, summed over tokens and sequences
  view<Scalar> grad_initial_eta;       ///< [N,HV,V,K]
  view<Scalar> grad_initial_evidence;  ///< as initial_evidence
};

/// What `step` reads and updates: n new tokens (usually one) for each of B rows, states in a pool.
template <class Storage, class Scalar = typename stored_as::arithmetic<Storage>::type>
struct step_arguments {
  static_assert(sizeof(stored_as::checked_types<Storage, Scalar>) > 0);

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

/// Whether β differs from channel to channel: four axes, of which the last has more than one number. Repeated over V by a stride of
/// 0, or for V = 1, it is one a head.
template <class Scalar>
bool per_channel(view<Scalar> const& beta) {
  return beta.rank == 4 && beta.extent[3] > 1 && beta.stride[3] != 0;
}

}  // namespace palimpsa
