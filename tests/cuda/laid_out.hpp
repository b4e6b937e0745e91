#pragma once
// A problem laid out in host or device memory, as the arguments of a scan or a step on the GPU, and what such a call must write.
// Tensor is placed (host) or on_device; both offer (sizes, layout), (sizes, layout, numbers), view, values, bits, still_poisoned and
// gaps_untouched.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "palimpsa/arguments.hpp"
#include "support/catch.hpp"
#include "support/compare.hpp"
#include "support/oracle.hpp"
#include "support/problem.hpp"
#include "cuda/placed.hpp"

namespace palimpsa_test {

/// The problem as a kernel of this storage sees it: the right values are those of the rounded inputs.
template <class Storage>
problem as_stored(problem p) {
  for (numbers* x : {&p.q, &p.k, &p.v})
    for (double& y : *x) y = as_number(number_as<Storage>(y));
  for (numbers* x : {&p.beta, &p.log_decay, &p.prior, &p.initial_eta, &p.initial_evidence})
    for (double& y : *x) y = static_cast<double>(static_cast<float>(y));
  return p;
}

/// The rounding of `out` to storage: half a unit in the last place of 24, 11 or 8 bits.
template <class Storage>
double storage_rounding() {
  if (sizeof(Storage) == 4) return 0;
  return as_number(number_as<Storage>(1 + 1.0 / 1024)) == 1 ? 1.0 / 256 : 1.0 / 2048;
}

/// Tensors of a call.
enum class index_width { int32, int64 };

template <template <class> class Tensor>
struct index_list {
  index_list() = default;
  index_list(std::vector<std::int64_t> const& list, index_width width, sizes e = {}) {
    if (e.empty()) e = {static_cast<std::int64_t>(list.size())};
    numbers const values(list.begin(), list.end());
    if (width == index_width::int32)
      narrow = {e, layout::aligned, values};
    else
      wide = {e, layout::odd_pointer, values};
  }
  operator palimpsa::index_view() const {
    palimpsa::view<std::int32_t> const n = narrow.view();
    palimpsa::view<std::int64_t> const w = wide.view();
    if (n.rank == 1) return {n.data, n.extent[0]};
    if (n.rank == 2) return {n.data, n.extent[0], n.extent[1]};
    if (w.rank == 1) return {w.data, w.extent[0]};
    if (w.rank == 2) return {w.data, w.extent[0], w.extent[1]};
    return {};
  }
  Tensor<std::int32_t> narrow;
  Tensor<std::int64_t> wide;
};

/// What a scan or a step reads besides states.
template <template <class> class Tensor, class Storage>
struct laid_out {
  explicit laid_out(problem const& p, layout how = layout::aligned, layout state_how = layout::aligned,
                    index_width width = index_width::int32)
      : rule(p.rule), scale(p.sizes.scale) {
    recipe const& s = p.sizes;
    q = {{s.B, s.T, s.HK, s.K}, how, p.q};
    k = {{s.B, s.T, s.HK, s.K}, how, p.k};
    v = {{s.B, s.T, s.HV, s.V}, how, p.v};
    if (s.beta == beta_shape::head) beta = {{s.B, s.T, s.HV}, how, p.beta};
    if (s.beta == beta_shape::channel) beta = {{s.B, s.T, s.HV, s.V}, how, p.beta};
    if (!p.log_decay.empty() || (s.gated && s.B * s.T == 0 && rule.forget != gates::none)) {
      if (rule.forget == gates::constant) log_decay = {{s.HV}, how, p.log_decay};
      if (rule.forget == gates::head) log_decay = {{s.B, s.T, s.HV}, how, p.log_decay};
      if (rule.forget == gates::key) log_decay = {{s.B, s.T, s.HV, s.K}, how, p.log_decay};
    }
    if (rule.keeps_precision()) {
      bool const per_key = s.prior_per_key && rule.keeps_full();
      prior = {per_key ? sizes{s.HV, s.K} : sizes{s.HV}, how, p.prior};
    }
    std::int64_t const N = p.sequences();
    if (s.initial_state) {
      initial_eta = {{N, s.HV, s.V, s.K}, state_how, p.initial_eta};
      if (rule.keeps_precision()) initial_evidence = {{N, s.HV, p.evidence_rows(), s.K}, state_how, p.initial_evidence};
    }
    if (!p.cu_seqlens.empty()) cu_seqlens = {p.cu_seqlens, width};
  }

  palimpsa::scan_inputs<Storage> inputs() const {
    palimpsa::scan_inputs<Storage> in;
    in.q = q.view(), in.k = k.view(), in.v = v.view();
    in.beta = beta.view(), in.log_decay = log_decay.view(), in.prior = prior.view();
    in.initial_eta = initial_eta.view(), in.initial_evidence = initial_evidence.view();
    in.cu_seqlens = cu_seqlens;
    in.scale = scale;
    return in;
  }

  rule_name rule;
  double scale;
  Tensor<Storage> q, k, v;
  Tensor<float> beta, log_decay, prior, initial_eta, initial_evidence;
  index_list<Tensor> cu_seqlens;
};

/// What a scan writes: all that the rule has, poisoned.
template <template <class> class Tensor, class Storage>
struct written {
  explicit written(problem const& p, layout how = layout::aligned, layout state_how = layout::aligned, bool variance = true) {
    recipe const& s = p.sizes;
    std::int64_t const N = p.sequences();
    out = {{s.B, s.T, s.HV, s.V}, how};
    final_eta = {{N, s.HV, s.V, s.K}, state_how};
    if (!p.rule.keeps_precision()) return;
    final_evidence = {{N, s.HV, p.evidence_rows(), s.K}, state_how};
    if (variance) out_variance = {{s.B, s.T, s.HV, s.V}, how};
  }

  palimpsa::scan_outputs<Storage> outputs() const { return {out.view(), out_variance.view(), final_eta.view(), final_evidence.view()}; }

  bool gaps_untouched() const {
    return out.gaps_untouched() && out_variance.gaps_untouched() && final_eta.gaps_untouched() && final_evidence.gaps_untouched();
  }
  bool still_poisoned() const {
    return out.still_poisoned() && out_variance.still_poisoned() && final_eta.still_poisoned() && final_evidence.still_poisoned();
  }
  std::vector<unsigned char> bits() const {
    std::vector<unsigned char> all = out.bits();
    for (Tensor<float> const* x : {&out_variance, &final_eta, &final_evidence}) {
      std::vector<unsigned char> const more = x->bits();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

  Tensor<Storage> out;
  Tensor<float> out_variance, final_eta, final_evidence;
};

/// A state as large as float can be, a wall, and tokens after it: what a clamped gate, or one that is subtracted after the fact, would
/// let through is larger than all that follows.
inline problem behind_a_wall(rule_name rule, double wall, std::uint64_t n) {
  recipe r;
  r.B = 1, r.T = 5, r.K = 20, r.V = 6, r.log_decays = {0, -0.05};
  problem p = draw(rule, r, n);
  for (double& x : p.initial_eta) x *= 1e36;
  std::size_t const gates = p.log_decay.size() / static_cast<std::size_t>(r.T);
  std::fill_n(p.log_decay.begin(), gates, wall);
  return p;
}

/// Bounds of the contract for float32 arithmetic over n tokens; where a system of this condition was solved, those of the system.
inline double plain_bound(std::int64_t n) { return (std::min)(5e-7 * std::sqrt(static_cast<double>((std::max)(n, std::int64_t{1}))), 1e-5); }
inline double solved_bound(problem const& p, double condition) {
  double const plain = plain_bound(p.longest());
  return p.rule.keeps_full() ? (std::max)(plain, 8 * 0x1p-23 * condition) : plain;
}

/// The bound of reads. A read is a sum over the keys; where few reads are judged and their terms cancel, it is 2⁻²³ of the terms' size
/// (over 6,000 seeds of each problem of one token that the tests draw, errors stay below 0.72 of it, and reach 97 times the plain bound).
inline double read_bound(problem const& p, right_values const& right) {
  return (std::max)(solved_bound(p, right.condition), 0x1p-23 * cancellation(right));
}

/// CHECKs all that a scan wrote.
template <template <class> class Tensor, class Storage>
void check_scan(written<Tensor, Storage> const& x, right_values const& right, problem const& p) {
  double const plain = plain_bound(p.longest()), solved = solved_bound(p, right.condition);
  INFO("condition " << right.condition << ", cancellation " << cancellation(right));
  PALIMPSA_TEST_CLOSE("out", x.out.values(), right.out, read_bound(p, right) + storage_rounding<Storage>());
  if (x.out_variance.view().present()) PALIMPSA_TEST_CLOSE("out_variance", x.out_variance.values(), right.out_variance, solved);
  PALIMPSA_TEST_CLOSE("final_eta", x.final_eta.values(), right.final_eta, plain);
  PALIMPSA_TEST_CLOSE("final_evidence", x.final_evidence.values(), right.final_evidence, plain);
  CHECK(x.gaps_untouched());
}

}  // namespace palimpsa_test
