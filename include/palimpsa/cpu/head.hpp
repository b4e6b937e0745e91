#pragma once
/// @file
/// One head of one sequence, cut out of the caller's tensors: what every CPU path works on.

#include <cstdint>

#include "palimpsa/arguments.hpp"
#include "palimpsa/policies/forget.hpp"
#include "palimpsa/shape.hpp"

namespace palimpsa::cpu {

/// Two axes of a caller's tensor: [tokens, channels] or [rows, columns]. data = nullptr means absent.
template <class T>
struct plane {
  T* data = nullptr;      ///< element (0, 0)
  std::int64_t row = 0;   ///< step from one row to the next, in elements
  std::int64_t column = 0;  ///< step along a row, in elements

  /// Element (i, j).
  T& operator()(std::int64_t i, std::int64_t j) const { return data[i * row + j * column]; }
  /// Whether there is anything to read or write.
  bool present() const { return data != nullptr; }
};

/// Tokens of one head: [T, channels] from a [B,T,H,C] tensor; a missing channel axis is repeated (step 0).
template <class T>
plane<T> tokens_of(view<T> const& tensor, segment s, std::int64_t head) {
  if (!tensor.present()) return {};
  return {tensor.at(s.row, s.first, head), tensor.stride[1], tensor.rank > 3 ? tensor.stride[3] : 0};
}

/// The gates of one head: [T, 1 or K]; a constant gate is the same for every token (step 0).
template <class Forget, class T>
plane<T> gates_of(view<T> const& log_decay, segment s, std::int64_t head) {
  if (!log_decay.present()) return {};
  if constexpr (Forget::scope == gate_scope::constant) {
    return {log_decay.at(head), 0, 0};
  } else {
    return tokens_of(log_decay, s, head);
  }
}

/// The matrix of one head from a [N,HV,rows,columns] tensor of states.
template <class T>
plane<T> state_of(view<T> const& tensor, std::int64_t n, std::int64_t head) {
  if (!tensor.present()) return {};
  return {tensor.at(n, head), tensor.stride[2], tensor.stride[3]};
}

/// The prior of one head: [1 or K] in row 0.
template <class T>
plane<T> prior_of(view<T> const& prior, std::int64_t head) {
  if (!prior.present()) return {};
  return {prior.at(head), 0, prior.rank > 1 ? prior.stride[1] : 0};
}

/// What one head of one sequence reads.
template <class Storage, class Scalar>
struct head_inputs {
  std::int64_t tokens = 0;       ///< length of the sequence
  std::int64_t keys = 0;         ///< K
  std::int64_t values = 0;       ///< V
  plane<Storage const> q, k, v;  ///< [T,K], [T,K], [T,V]
  plane<Scalar const> beta;      ///< [T,V], step 0 along V when it is one a head; absent = 1
  plane<Scalar const> log_decay;  ///< [T, 1 or K]; absent = 0
  plane<Scalar const> prior;     ///< [1, 1 or K]
  plane<Scalar const> eta, evidence;  ///< state before the first token; absent = 0
  Scalar scale = 1;              ///< multiplies the read
};

/// Head `head` of sequence n of a scan.
template <class Rule, class Storage, class Scalar>
head_inputs<Storage, Scalar> head_of(scan_inputs<Storage, Scalar> const& in, scan_shape const& s, std::int64_t n,
                                     std::int64_t head) {
  segment const where = segment_of(s, in.cu_seqlens, n);
  std::int64_t const key_head = head / s.group();
  head_inputs<Storage, Scalar> h;
  h.tokens = where.length;
  h.keys = s.keys;
  h.values = s.values;
  h.q = tokens_of(in.q, where, key_head);
  h.k = tokens_of(in.k, where, key_head);
  h.v = tokens_of(in.v, where, head);
  h.beta = tokens_of(in.beta, where, head);
  h.log_decay = gates_of<typename Rule::forget_type>(in.log_decay, where, head);
  h.prior = prior_of(in.prior, head);
  h.eta = state_of(in.initial_eta, n, head);
  h.evidence = state_of(in.initial_evidence, n, head);
  h.scale = static_cast<Scalar>(in.scale);
  return h;
}

}  // namespace palimpsa::cpu
