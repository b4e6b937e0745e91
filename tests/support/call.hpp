#pragma once
// A problem laid out in memory, as a call on the sequential path, with its outputs poisoned.

#include <cstddef>
#include <optional>
#include <vector>

#include "support/compare.hpp"
#include "support/oracle.hpp"
#include "support/rules.hpp"
#include "support/tensor.hpp"

namespace palimpsa_test {

/// The problem as this storage and its arithmetic see it: the right values are those of the rounded inputs.
template <class Storage> problem rounded(problem p) {
  using scalar = typename palimpsa::storage<Storage>::scalar;
  for (numbers* x : {&p.q, &p.k, &p.v})
    for (double& y : *x) y = static_cast<double>(palimpsa::storage<Storage>::load(tensor<Storage>::from_double(y)));
  for (numbers* x : {&p.beta, &p.log_decay, &p.prior, &p.initial_eta, &p.initial_evidence})
    for (double& y : *x) y = static_cast<double>(static_cast<scalar>(y));
  return p;
}

/// Bytes for a workspace, all ones (a NaN in every type): what was in it must not matter.
inline std::vector<std::byte> scratch_of(std::size_t size) { return std::vector<std::byte>(size, std::byte{0xff}); }

/// Elements [first, first + length) of one axis.
template <class T> palimpsa::view<T> narrow(palimpsa::view<T> v, int axis, std::int64_t first, std::int64_t length) {
  if (!v.present()) return v;
  v.data += first * v.stride[axis];
  v.extent[axis] = length;
  return v;
}

/// Tokens [first, first + length) of a call's inputs, under the call's initial state.
template <class Storage>
palimpsa::scan_inputs<Storage> tokens_of(palimpsa::scan_inputs<Storage> in, std::int64_t first, std::int64_t length) {
  in.q = narrow(in.q, 1, first, length), in.k = narrow(in.k, 1, first, length), in.v = narrow(in.v, 1, first, length);
  in.beta = narrow(in.beta, 1, first, length);
  if (in.log_decay.rank > 1) in.log_decay = narrow(in.log_decay, 1, first, length);
  return in;
}

/// What a call writes.
template <class Storage> struct results {
  using scalar = typename palimpsa::storage<Storage>::scalar;
  tensor<Storage> out;
  tensor<scalar> out_variance, final_eta, final_evidence;

  bool gaps_untouched() const {
    return out.gaps_untouched() && out_variance.gaps_untouched() && final_eta.gaps_untouched() &&
           final_evidence.gaps_untouched();
  }
  bool still_poisoned() const {
    return out.still_poisoned() && out_variance.still_poisoned() && final_eta.still_poisoned() &&
           final_evidence.still_poisoned();
  }
};

template <class Storage> bool same_bits(results<Storage> const& a, results<Storage> const& b) {
  return a.out.bits() == b.out.bits() && a.out_variance.bits() == b.out_variance.bits() &&
         a.final_eta.bits() == b.final_eta.bits() && a.final_evidence.bits() == b.final_evidence.bits();
}

/// A problem in memory.
template <class Storage> class call {
 public:
  using scalar = typename palimpsa::storage<Storage>::scalar;

  call(problem const& p, arrangement how = arrangement::contiguous) : rule(p.rule), sizes_(p.sizes), cu_(p.cu_seqlens) {
    recipe const& s = p.sizes;
    std::int64_t const N = p.sequences();
    q = {{s.B, s.T, s.HK, s.K}, how, p.q};
    k = {{s.B, s.T, s.HK, s.K}, how, p.k};
    v = {{s.B, s.T, s.HV, s.V}, how, p.v};
    bool const channel = s.beta == beta_shape::channel, key = rule.forget == gates::key;
    if (s.beta != beta_shape::absent) {
      extents e{s.B, s.T, s.HV};
      if (channel) e.push_back(s.V);
      beta = {e, how, p.beta};
    }
    if (rule.forget == gates::constant) log_decay = {{s.HV}, how, p.log_decay};
    if (rule.forget == gates::head || key) {
      extents e{s.B, s.T, s.HV};
      if (key) e.push_back(s.K);
      if (s.gated) log_decay = {e, how, p.log_decay};
    }
    if (rule.keeps_precision()) {
      extents e{s.HV};
      if (s.prior_per_key && rule.keeps_full()) e.push_back(s.K);
      prior = {e, how, p.prior};
    }
    state_ = {N, s.HV, s.V, s.K};
    evidence_ = {N, s.HV, p.evidence_rows(), s.K};
    if (s.initial_state) {
      initial_eta = {state_, how, p.initial_eta};
      if (rule.keeps_precision()) initial_evidence = {evidence_, how, p.initial_evidence};
    }
    in.q = q, in.k = k, in.v = v, in.beta = beta, in.log_decay = log_decay, in.prior = prior;
    in.initial_eta = initial_eta, in.initial_evidence = initial_evidence;
    if (!cu_.empty()) in.cu_seqlens = {cu_.data(), static_cast<std::int64_t>(cu_.size())};
    in.scale = s.scale;
  }

  /// Poisoned outputs, all that the rule has.
  results<Storage> outputs(arrangement how = arrangement::contiguous) const {
    results<Storage> r;
    recipe const& s = sizes_;
    r.out = {{s.B, s.T, s.HV, s.V}, how};
    r.final_eta = {state_, how};
    if (rule.keeps_precision()) {
      r.out_variance = {{s.B, s.T, s.HV, s.V}, how};
      r.final_evidence = {evidence_, how};
    }
    return r;
  }

  /// Runs it into `r`. One thread unless told otherwise: problems this small wait longer for threads than they work.
  void run(results<Storage>& r, palimpsa::sequential how = {1}) const {
    auto scratch = scratch_of(scan_workspace(rule, how, in));
    run_scan(rule, how, in, {r.out, r.out_variance, r.final_eta, r.final_evidence}, palimpsa::workspace(scratch));
  }

  /// Runs it.
  results<Storage> run(arrangement how = arrangement::contiguous, palimpsa::sequential with = {1}) const {
    results<Storage> r = outputs(how);
    run(r, with);
    return r;
  }

  rule_name rule;
  tensor<Storage> q, k, v;
  tensor<scalar> beta, log_decay, prior, initial_eta, initial_evidence;
  palimpsa::scan_inputs<Storage> in;

 private:
  recipe sizes_;
  std::vector<std::int64_t> cu_;
  extents state_, evidence_;
};

/// CHECKs all results of a problem against its right values. `storage_error` is the rounding of `out` alone.
template <class Storage>
void check_right(results<Storage> const& x, right_values const& right, problem const& p, double storage_error = 0) {
  double const bound = arithmetic_bound<typename results<Storage>::scalar>(p.longest());
  double const solved =
      arithmetic_bound<typename results<Storage>::scalar>(p.longest(), right.condition > 50 ? right.condition : 1);
  if (right.condition > 50) UNSCOPED_INFO("condition " << right.condition);
  PALIMPSA_TEST_CLOSE("out", x.out.values(), right.out, solved + storage_error);
  PALIMPSA_TEST_CLOSE("out_variance", x.out_variance.values(), right.out_variance, solved);
  PALIMPSA_TEST_CLOSE("final_eta", x.final_eta.values(), right.final_eta, bound);
  PALIMPSA_TEST_CLOSE("final_evidence", x.final_evidence.values(), right.final_evidence, bound);
  CHECK(x.gaps_untouched());
}

}  // namespace palimpsa_test
