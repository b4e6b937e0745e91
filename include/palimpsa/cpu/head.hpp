#pragma once
/// @file
/// One head of one sequence, cut out of the caller's tensors: what every CPU path works on.

#include <cstdint>

#include "palimpsa/arguments.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/plane.hpp"
#include "palimpsa/shape.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

using palimpsa::gates_of;
using palimpsa::plane;
using palimpsa::prior_of;
using palimpsa::state_of;
using palimpsa::tokens_of;

/// What one head of one sequence reads.
template <class Storage, class Scalar>
struct head_inputs {
  std::int64_t tokens = 0;        ///< length of the sequence
  std::int64_t keys = 0;          ///< K
  std::int64_t values = 0;        ///< V
  plane<Storage const> q;         ///< [T,K]
  plane<Storage const> k;         ///< [T,K]
  plane<Storage const> v;         ///< [T,V]
  plane<Scalar const> beta;       ///< [T,V], step 0 along V when it is one a head; absent = 1
  plane<Scalar const> log_decay;  ///< [T, 1 or K]; absent = 0
  plane<Scalar const> prior;      ///< [1, 1 or K]
  plane<Scalar const> eta;        ///< η before the first token; absent = 0
  plane<Scalar const> evidence;   ///< J before the first token; absent = 0
  Scalar scale = 1;               ///< multiplies the read
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
