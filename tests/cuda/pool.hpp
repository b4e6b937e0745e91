#pragma once
// Steps over pools of states: where each row reads and writes, and what must be in outputs and pool afterwards. Slots that no row
// reads hold NaN, so that reading one shows.

#include <cstdint>
#include <limits>
#include <vector>

#include "cuda/laid_out.hpp"

namespace palimpsa_test {

/// Slots of a step.
struct pool_plan {
  std::int64_t slots;
  std::vector<std::int64_t> in;   ///< [B]; empty = absent
  std::vector<std::int64_t> out;  ///< [B], or [B,n] with snapshots; empty = absent
  bool snapshots = false;

  bool holds(std::int64_t slot) const { return slot >= 0 && slot < slots; }
  std::int64_t read_by(std::int64_t b) const { return in.empty() ? b : in[static_cast<std::size_t>(b)]; }
  /// Where row b's state goes after token t of n; negative = nowhere.
  std::int64_t written_by(std::int64_t b, std::int64_t t, std::int64_t n) const {
    if (snapshots) return out[static_cast<std::size_t>(b * n + t)];
    if (t + 1 != n) return -1;
    return out.empty() ? read_by(b) : out[static_cast<std::size_t>(b)];
  }
};

inline std::ostream& operator<<(std::ostream& o, pool_plan const& plan) {
  o << plan.slots << " slots, in";
  for (std::int64_t s : plan.in) o << ' ' << s;
  o << ", out";
  for (std::int64_t s : plan.out) o << ' ' << s;
  return o;
}

/// Tokens [first, last) of every batch row.
inline problem tokens_between(problem p, std::int64_t first, std::int64_t last) {
  recipe& s = p.sizes;
  auto const cut = [&](numbers& x, std::int64_t width) {
    if (x.empty()) return;
    numbers kept;
    for (std::int64_t b = 0; b < s.B; ++b)
      kept.insert(kept.end(), x.begin() + (b * s.T + first) * width, x.begin() + (b * s.T + last) * width);
    x = kept;
  };
  cut(p.q, s.HK * s.K);
  cut(p.k, s.HK * s.K);
  cut(p.v, s.HV * s.V);
  cut(p.beta, s.HV * (s.beta == beta_shape::channel ? s.V : 1));
  if (p.rule.forget != gates::constant) cut(p.log_decay, s.HV * (p.rule.forget == gates::key ? s.K : 1));
  s.T = last - first;
  return p;
}

/// States of a pool, dense: slot s holds the initial state of the row that reads it, NaN if none does.
inline numbers pool_of(numbers const& states, std::int64_t size, std::int64_t B, pool_plan const& plan) {
  numbers pool(static_cast<std::size_t>(plan.slots * size), std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t b = 0; b < B; ++b)
    if (plan.holds(plan.read_by(b)))
      for (std::int64_t i = 0; i < size; ++i)
        pool[static_cast<std::size_t>(plan.read_by(b) * size + i)] = states.empty() ? 0 : states[static_cast<std::size_t>(b * size + i)];
  return pool;
}

/// Rows that read one slot start from one state: the first such row's.
inline problem with_shared_states(problem p, pool_plan const& plan) {
  recipe const& s = p.sizes;
  for (numbers* states : {&p.initial_eta, &p.initial_evidence}) {
    auto const size = static_cast<std::ptrdiff_t>(states->size()) / s.B;
    for (std::int64_t b = 0; b < s.B; ++b) {
      std::int64_t first = 0;
      while (plan.read_by(first) != plan.read_by(b)) ++first;
      std::copy_n(states->begin() + first * size, size, states->begin() + b * size);
    }
  }
  return p;
}

/// The arguments of a step, in memory.
template <template <class> class Tensor, class Storage>
struct pooled {
  pooled(problem const& p, pool_plan const& plan, layout how = layout::aligned, layout state_how = layout::aligned,
         index_width width = index_width::int32, bool variance = true)
      : inputs(without_states(p), how), outputs(without_states(p), how, layout::aligned, variance) {
    recipe const& s = p.sizes;
    std::int64_t const eta_size = s.HV * s.V * s.K, evidence_size = s.HV * p.evidence_rows() * s.K;
    eta = {{plan.slots, s.HV, s.V, s.K}, state_how, pool_of(p.initial_eta, eta_size, s.B, plan)};
    if (p.rule.keeps_precision())
      evidence = {{plan.slots, s.HV, p.evidence_rows(), s.K}, state_how, pool_of(p.initial_evidence, evidence_size, s.B, plan)};
    if (!plan.in.empty()) slot_in = {plan.in, width};
    if (!plan.out.empty()) slot_out = {plan.out, width, plan.snapshots ? sizes{s.B, s.T} : sizes{s.B}};
  }

  palimpsa::step_arguments<Storage> arguments() const {
    palimpsa::scan_inputs<Storage> const in = inputs.inputs();
    palimpsa::step_arguments<Storage> a;
    a.q = in.q, a.k = in.k, a.v = in.v, a.beta = in.beta, a.log_decay = in.log_decay, a.prior = in.prior, a.scale = in.scale;
    a.eta = eta.view(), a.evidence = evidence.view(), a.slot_in = slot_in, a.slot_out = slot_out;
    a.out = outputs.out.view(), a.out_variance = outputs.out_variance.view();
    return a;
  }

  static problem without_states(problem p) {
    p.sizes.initial_state = false;
    return p;
  }

  laid_out<Tensor, Storage> inputs;
  written<Tensor, Storage> outputs;  ///< its final states are not used
  Tensor<float> eta, evidence;
  index_list<Tensor> slot_in, slot_out;
};

/// One tensor of a pool against its right values: written slots within the bound, all others as they were.
inline void check_pool(char const* name, numbers const& before, numbers const& after, std::vector<numbers> const& right, double bound) {
  std::size_t const size = before.size() / right.size();
  numbers written_now, written_right;
  bool others = true;
  for (std::size_t slot = 0; slot < right.size(); ++slot) {
    auto const first = after.begin() + static_cast<std::ptrdiff_t>(slot * size);
    if (right[slot].empty()) {
      for (std::size_t i = slot * size; i < (slot + 1) * size; ++i)
        others = others && (after[i] == before[i] || (std::isnan(after[i]) && std::isnan(before[i])));
    } else {
      written_now.insert(written_now.end(), first, first + static_cast<std::ptrdiff_t>(size));
      written_right.insert(written_right.end(), right[slot].begin(), right[slot].end());
    }
  }
  PALIMPSA_TEST_CLOSE(name, written_now, written_right, bound);
  INFO(name << ": slots that no row writes");
  CHECK(others);
}

/// CHECKs outputs and pools after a step.
template <template <class> class Tensor, class Storage>
void check_step(pooled<Tensor, Storage> const& x, problem const& p, pool_plan const& plan) {
  recipe const& s = p.sizes;
  std::int64_t const eta_size = s.HV * s.V * s.K, evidence_size = p.rule.keeps_precision() ? s.HV * p.evidence_rows() * s.K : 0;
  std::vector<numbers> eta(static_cast<std::size_t>(plan.slots)), evidence(static_cast<std::size_t>(plan.slots));
  right_values right = oracle(p);
  auto const row = [](numbers const& all, std::int64_t b, std::int64_t size) {
    return numbers(all.begin() + b * size, all.begin() + (b + 1) * size);
  };
  for (std::int64_t t = 0; t < s.T; ++t) {
    if (!plan.snapshots && t + 1 < s.T) continue;
    right_values const now = oracle(tokens_between(p, 0, t + 1));
    for (std::int64_t b = 0; b < s.B; ++b) {
      std::int64_t const slot = plan.written_by(b, t, s.T);
      if (!plan.holds(plan.read_by(b)) || !plan.holds(slot)) continue;
      eta[static_cast<std::size_t>(slot)] = row(now.final_eta, b, eta_size);
      if (evidence_size > 0) evidence[static_cast<std::size_t>(slot)] = row(now.final_evidence, b, evidence_size);
    }
  }
  for (std::int64_t b = 0; b < s.B; ++b) {
    if (plan.holds(plan.read_by(b))) continue;  // an inert row reads zero
    for (numbers* out : {&right.out, &right.out_variance})
      for (std::int64_t i = b * s.T * s.HV * s.V; i < (b + 1) * s.T * s.HV * s.V && !out->empty(); ++i)
        (*out)[static_cast<std::size_t>(i)] = 0;
  }
  double const plain = plain_bound(s.T), solved = solved_bound(p, right.condition);
  INFO("condition " << right.condition << ", cancellation " << cancellation(right));
  PALIMPSA_TEST_CLOSE("out", x.outputs.out.values(), right.out, read_bound(p, right) + storage_rounding<Storage>());
  if (x.outputs.out_variance.view().present())
    PALIMPSA_TEST_CLOSE("out_variance", x.outputs.out_variance.values(), right.out_variance, solved);
  check_pool("eta", pool_of(p.initial_eta, eta_size, s.B, plan), x.eta.values(), eta, plain);
  if (evidence_size > 0) check_pool("evidence", pool_of(p.initial_evidence, evidence_size, s.B, plan), x.evidence.values(), evidence, plain);
  CHECK(x.eta.gaps_untouched());
  CHECK(x.evidence.gaps_untouched());
  CHECK(x.outputs.out.gaps_untouched());
  CHECK(x.outputs.out_variance.gaps_untouched());
}

/// Slots for a step of a problem with B = 4 rows and n tokens, each with a meaning.
inline std::vector<pool_plan> pool_plans(std::int64_t n) {
  std::vector<pool_plan> plans;
  plans.push_back({4, {}, {}});                              // row b in slot b
  plans.push_back({6, {}, {}});                              // a larger pool
  plans.push_back({9, {7, 0, 3, 8}, {}});                    // in place, anywhere
  plans.push_back({9, {7, -1, 3, -1}, {}});                  // padded rows
  plans.push_back({9, {7, -1, 3, 0}, {1, 2, -1, 0}});        // elsewhere; a state that is not kept; an inert row's slot
  plans.push_back({9, {4, 4, -1, 4}, {5, 6, -1, 7}});        // a prefix that rows share
  pool_plan snapshots{4 + 4 * n, {2, 1, -1, 0}, {}, true};
  for (std::int64_t i = 0; i < 4 * n; ++i) snapshots.out.push_back(i == n ? -1 : 4 + i);
  plans.push_back(snapshots);
  return plans;
}

/// Slots that are out of range; the rows are inert, or their states not kept, and the status word says so.
inline std::vector<pool_plan> hostile_plans() {
  std::int64_t const far = std::int64_t{1} << 30;
  return {{5, {5, 0, -2, 1}, {}}, {5, {0, far, 2, -far}, {}}, {5, {0, 1, 2, 3}, {0, 5, -2, 3}}, {5, {0, 1, 2, 3}, {far, 4, -far, 3}}};
}

}  // namespace palimpsa_test
