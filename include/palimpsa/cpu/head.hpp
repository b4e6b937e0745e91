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

/// Head `head` of a scan or a step, whose tokens lie at `where`, from a state.
template <class Rule, class Call, class Scalar>
head_inputs<typename Call::storage_type, Scalar> head_of(Call const& call, scan_shape const& s, segment where, std::int64_t head,
                                                         plane<Scalar const> eta, plane<Scalar const> evidence) {
  std::int64_t const key_head = head / s.group();
  head_inputs<typename Call::storage_type, Scalar> h;
  h.tokens = where.length;
  h.keys = s.keys;
  h.values = s.values;
  h.q = tokens_of(call.q, where, key_head);
  h.k = tokens_of(call.k, where, key_head);
  h.v = tokens_of(call.v, where, head);
  h.beta = tokens_of(call.beta, where, head);
  h.log_decay = gates_of<typename Rule::forget_type>(call.log_decay, where, head);
  h.prior = prior_of(call.prior, head);
  h.eta = eta;
  h.evidence = evidence;
  h.scale = static_cast<Scalar>(call.scale);
  return h;
}

/// Head `head` of sequence n of a scan.
template <class Rule, class Storage, class Scalar>
head_inputs<Storage, Scalar> head_of(scan_inputs<Storage, Scalar> const& in, scan_shape const& s, std::int64_t n, std::int64_t head) {
  return head_of<Rule, scan_inputs<Storage, Scalar>, Scalar>(in, s, segment_of(s, in.cu_seqlens, n), head,
                                                             state_of(in.initial_eta, n, head), state_of(in.initial_evidence, n, head));
}

}  // namespace palimpsa::cpu
