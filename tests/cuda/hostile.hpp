#pragma once
// Sequence boundaries that no caller should pass and every kernel must survive: a segment that falls, or leaves [0, T], is empty.

#include <cstdint>
#include <limits>
#include <vector>

#include "cuda/laid_out.hpp"

namespace palimpsa_test {

/// Boundaries for T = 20.
inline std::vector<std::vector<std::int64_t>> hostile_boundaries() {
  std::int64_t const far = std::int64_t{1} << 30;
  return {{0, 12, 8, 20},       // falls
          {-3, 5, 20},          // negative
          {0, 5, 21},           // past the end
          {0, 7, far, 20},      // far past the end
          {0, 7, -far, 20},     // far before the start
          {2, 9, 20},           // does not start at 0
          {0, 9, 19},           // does not end at T
          {20, 15, 10, 5, 0}};  // falls all the way
}

/// What a scan over such boundaries must leave: outputs of tokens that one good segment holds, initial states for bad ones.
template <template <class> class Tensor, class Storage>
void check_hostile(written<Tensor, Storage> const& x, problem const& p) {
  recipe const& s = p.sizes;
  std::int64_t const size = s.HV * s.V, eta_size = size * s.K, evidence_size = p.rule.keeps_precision() ? s.HV * p.evidence_rows() * s.K : 0;
  std::vector<int> writers(static_cast<std::size_t>(s.T));
  right_values right;
  right.out.resize(p.v.size());
  right.out_variance.resize(p.rule.keeps_precision() ? p.v.size() : 0);
  for (std::int64_t n = 0; n < p.sequences(); ++n) {
    std::int64_t const first = p.cu_seqlens[static_cast<std::size_t>(n)], end = p.cu_seqlens[static_cast<std::size_t>(n) + 1];
    bool const good = 0 <= first && first <= end && end <= s.T;
    problem one = p;
    one.cu_seqlens = {good ? first : 0, good ? end : 0};
    one.initial_eta.assign(p.initial_eta.begin() + n * eta_size, p.initial_eta.begin() + (n + 1) * eta_size);
    if (evidence_size > 0)
      one.initial_evidence.assign(p.initial_evidence.begin() + n * evidence_size, p.initial_evidence.begin() + (n + 1) * evidence_size);
    right_values const r = oracle(one);
    right.condition = (std::max)(right.condition, r.condition);
    right.final_eta.insert(right.final_eta.end(), r.final_eta.begin(), r.final_eta.end());
    right.final_evidence.insert(right.final_evidence.end(), r.final_evidence.begin(), r.final_evidence.end());
    for (std::int64_t t = one.cu_seqlens[0]; t < one.cu_seqlens[1]; ++t) {
      ++writers[static_cast<std::size_t>(t)];
      for (std::int64_t i = t * size; i < (t + 1) * size; ++i) {
        auto const at = static_cast<std::size_t>(i);
        right.out[at] = r.out[at];
        if (!right.out_variance.empty()) right.out_variance[at] = r.out_variance[at];
      }
    }
  }
  double const bound = solved_bound(p, right.condition) + storage_rounding<Storage>();
  auto const compare = [&](char const* name, numbers const& out, numbers const& expected) {
    numbers now, then;
    bool rest = true;
    for (std::size_t i = 0; i < out.size(); ++i) {
      int const count = writers[i / static_cast<std::size_t>(size)];
      if (count == 1) now.push_back(out[i]), then.push_back(expected[i]);
      if (count == 0) rest = rest && std::isnan(out[i]);
      if (count > 1) rest = rest && std::isfinite(out[i]);  // one of two writers' values
    }
    PALIMPSA_TEST_CLOSE(name, now, then, bound);
    INFO(name << " of tokens in no segment, or in two");
    CHECK(rest);
  };
  compare("out", x.out.values(), right.out);
  if (evidence_size > 0) compare("out_variance", x.out_variance.values(), right.out_variance);
  PALIMPSA_TEST_CLOSE("final_eta", x.final_eta.values(), right.final_eta, plain_bound(s.T));
  PALIMPSA_TEST_CLOSE("final_evidence", x.final_evidence.values(), right.final_evidence, plain_bound(s.T));
  CHECK(x.gaps_untouched());
}

/// A problem over such boundaries.
inline problem hostile_problem(rule_name rule, std::vector<std::int64_t> const& boundaries, std::uint64_t n) {
  recipe r;
  r.B = static_cast<std::int64_t>(boundaries.size()) - 1;  // so many initial states
  r.T = 20, r.K = 20, r.V = 5;
  problem p = draw(rule, r, n);
  numbers const eta = p.initial_eta, evidence = p.initial_evidence;
  r.B = 1;
  p = draw(rule, r, n);
  p.initial_eta = eta, p.initial_evidence = evidence;
  p.cu_seqlens = boundaries;
  return p;
}

}  // namespace palimpsa_test
