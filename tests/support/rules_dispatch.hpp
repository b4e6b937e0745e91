#pragma once
// From a rule_name to the template it names. Included by rules_*.cpp alone; see rules.hpp.

#include <stdexcept>
#include <type_traits>

#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/longhorn.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/scan.hpp"
#include "palimpsa/step.hpp"
#include "support/rules.hpp"

namespace palimpsa_test {
namespace dispatch {

using namespace palimpsa;

/// Calls f(rule type) if it is wanted; compiles nothing otherwise.
template <bool wanted, class Rule, class F> void call(F f) {
  if constexpr (wanted)
    f(std::type_identity<Rule>{});
  else
    throw std::logic_error("the tests do not instantiate this rule for this type");
}

/// One write with every way to forget and to weight. For a step: those of them that has_step knows.
template <class Storage, kind write, class Rule, bool step, class F> void with_write(rule_name r, F f) {
  constexpr auto known = [](gates forget, bool preweighted) {
    rule_name const name{write, forget, preweighted};
    return step ? has_step<Storage>(name) : instantiated<Storage>(name);
  };
  constexpr bool by_key = known(gates::key, false);
  if (r.preweighted) return call<known(gates::head, true), with_weighting<Rule, weighting::preweighted>>(f);
  if (r.forget == gates::head) return call<known(gates::head, false), Rule>(f);
  if (r.forget == gates::none) return call<known(gates::none, false), with_forget<Rule, forget::none>>(f);
  if (r.forget == gates::constant) return call<known(gates::constant, false), with_forget<Rule, forget::constant>>(f);
  call<by_key, with_forget<Rule, std::conditional_t<by_key, forget::per_key, forget::per_head>>>(f);
}

/// f(rule type) for a name.
template <class Storage, bool step, class F> void with_rule(rule_name r, F f) {
  switch (r.write) {
    case kind::mamba2:
      return with_write<Storage, kind::mamba2, Mamba2, step>(r, f);
    case kind::longhorn:
      return with_write<Storage, kind::longhorn, Longhorn, step>(r, f);
    case kind::delta:
      return with_write<Storage, kind::delta, GatedDeltaNet, step>(r, f);
    case kind::implicit_delta:
      return with_write<Storage, kind::implicit_delta, ImplicitGatedDeltaNet, step>(r, f);
    case kind::palimpsa:
      return with_write<Storage, kind::palimpsa, Palimpsa, step>(r, f);
    case kind::diagonal_kalman:
      return with_write<Storage, kind::diagonal_kalman, DiagonalKalman, step>(r, f);
    case kind::mesa_net:
      return with_write<Storage, kind::mesa_net, MesaNet, step>(r, f);
  }
}

// The named aliases are the points that with_forget reaches.
static_assert(std::is_same_v<LinearAttention, with_forget<Mamba2, forget::none>>);
static_assert(std::is_same_v<RetNet, with_forget<Mamba2, forget::constant>>);
static_assert(std::is_same_v<DeltaNet, with_forget<GatedDeltaNet, forget::none>>);
static_assert(std::is_same_v<ImplicitDeltaNet, with_forget<ImplicitGatedDeltaNet, forget::none>>);

}  // namespace dispatch

template <class Storage>
void run_scan(rule_name rule, palimpsa::sequential how, palimpsa::scan_inputs<Storage> const& in,
              palimpsa::scan_outputs<Storage> const& out, palimpsa::workspace scratch) {
  dispatch::with_rule<Storage, false>(
      rule, [&]<class Rule>(std::type_identity<Rule>) { palimpsa::scan<Rule>(how, in, out, scratch); });
}

template <class Storage>
std::size_t scan_workspace(rule_name rule, palimpsa::sequential how, palimpsa::scan_inputs<Storage> const& in) {
  std::size_t size = 0;
  dispatch::with_rule<Storage, false>(
      rule, [&]<class Rule>(std::type_identity<Rule>) { size = palimpsa::scan_workspace<Rule>(how, in); });
  return size;
}

template <class Storage>
void run_step(rule_name rule, palimpsa::sequential how, palimpsa::step_arguments<Storage> const& a,
              palimpsa::workspace scratch) {
  dispatch::with_rule<Storage, true>(
      rule, [&]<class Rule>(std::type_identity<Rule>) { palimpsa::step<Rule>(how, a, scratch); });
}

template <class Storage>
std::size_t step_workspace(rule_name rule, palimpsa::sequential how, palimpsa::step_arguments<Storage> const& a) {
  std::size_t size = 0;
  dispatch::with_rule<Storage, true>(
      rule, [&]<class Rule>(std::type_identity<Rule>) { size = palimpsa::step_workspace<Rule>(how, a); });
  return size;
}

}  // namespace palimpsa_test

/// Instantiates scans, or steps, of every rule for a storage type.
#define PALIMPSA_TEST_SCAN(S)                                                                              \
  template void palimpsa_test::run_scan(palimpsa_test::rule_name, palimpsa::sequential,                    \
                                        palimpsa::scan_inputs<S> const&, palimpsa::scan_outputs<S> const&, \
                                        palimpsa::workspace);                                              \
  template std::size_t palimpsa_test::scan_workspace(palimpsa_test::rule_name, palimpsa::sequential,       \
                                                     palimpsa::scan_inputs<S> const&);
#define PALIMPSA_TEST_STEP(S)                                                                        \
  template void palimpsa_test::run_step(palimpsa_test::rule_name, palimpsa::sequential,              \
                                        palimpsa::step_arguments<S> const&, palimpsa::workspace);    \
  template std::size_t palimpsa_test::step_workspace(palimpsa_test::rule_name, palimpsa::sequential, \
                                                     palimpsa::step_arguments<S> const&);
