#pragma once
// States in a pool, for calls of step.

#include <cstdint>

#include "support/call.hpp"

namespace palimpsa_test {

/// A pool of `slots` states in any arrangement. Slots that no problem fills hold NaN.
template <class Storage> class pool {
 public:
  using scalar = typename palimpsa::storage<Storage>::scalar;

  /// Slots 0, 1, ... hold the initial states of the problem's sequences; zeros if it has none.
  pool(problem const& p, std::int64_t slots, arrangement how = arrangement::contiguous) : rule_(p.rule) {
    recipe const& s = p.sizes;
    eta = {{slots, s.HV, s.V, s.K}, how};
    if (p.rule.keeps_precision()) evidence = {{slots, s.HV, p.evidence_rows(), s.K}, how};
    for (std::int64_t n = 0; n < p.sequences() && n < slots; ++n) fill(p, n, n);
  }

  /// Slot `slot` takes the initial state of sequence n.
  void fill(problem const& p, std::int64_t slot, std::int64_t n) {
    copy(eta, p.initial_eta, slot, n);
    if (rule_.keeps_precision()) copy(evidence, p.initial_evidence, slot, n);
  }

  /// The arguments of a step over all tokens of a call (outputs and slots are the test's to add).
  palimpsa::step_arguments<Storage> arguments(call<Storage> const& c) const {
    palimpsa::step_arguments<Storage> a;
    a.q = c.q, a.k = c.k, a.v = c.v, a.beta = c.beta, a.log_decay = c.log_decay, a.prior = c.prior;
    a.eta = eta, a.evidence = evidence, a.scale = c.in.scale;
    return a;
  }

  tensor<scalar> eta, evidence;

 private:
  static void copy(tensor<scalar> const& to, numbers const& from, std::int64_t slot, std::int64_t n) {
    palimpsa::view<scalar> const v = to.view();
    std::int64_t const size = v.extent[1] * v.extent[2] * v.extent[3];
    std::int64_t i = n * size;
    for (std::int64_t h = 0; h < v.extent[1]; ++h)
      for (std::int64_t r = 0; r < v.extent[2]; ++r)
        for (std::int64_t j = 0; j < v.extent[3]; ++j, ++i)
          v(slot, h, r, j) = from.empty() ? scalar(0) : static_cast<scalar>(from[static_cast<std::size_t>(i)]);
  }

  rule_name rule_;
};

/// Slot `slot` of a pool, dense and row-major.
template <class S> numbers slot_of(tensor<S> const& pool, std::int64_t slot) {
  numbers const all = pool.values();
  auto const size = all.size() / static_cast<std::size_t>(pool.view().extent[0]);
  auto const first = all.begin() + static_cast<std::ptrdiff_t>(size * static_cast<std::size_t>(slot));
  return numbers(first, first + static_cast<std::ptrdiff_t>(size));
}

}  // namespace palimpsa_test
