// The one place where the tests instantiate every rule. See rules.hpp.

#include "support/rules.hpp"

#include <stdexcept>

#include "palimpsa/palimpsa.hpp"

namespace palimpsa_test {
namespace {

using namespace palimpsa;

/// Calls f(rule type) if `name` says so and the type is wanted; compiles nothing otherwise.
template <bool wanted, class Rule, class F>
void call(F f) {
  if constexpr (wanted)
    f(std::type_identity<Rule>{});
  else
    throw std::logic_error("rules.cpp does not instantiate this rule for this type");
}

/// One write with every way to forget and to weight.
template <class Storage, kind write, class Rule, bool all, class F>
void with_write(rule_name r, F f) {
  constexpr auto known = [](gates forget, bool preweighted) { return instantiated<Storage>({write, forget, preweighted}); };
  constexpr bool by_key = write != kind::mesa_net && known(gates::key, false);
  if (r.preweighted) return call<all && known(gates::head, true), with_weighting<Rule, weighting::preweighted>>(f);
  if (r.forget == gates::head) return call<known(gates::head, false), Rule>(f);
  if (r.forget == gates::none) return call<all && known(gates::none, false), with_forget<Rule, forget::none>>(f);
  if (r.forget == gates::constant) return call<all && known(gates::constant, false), with_forget<Rule, forget::constant>>(f);
  call<by_key, with_forget<Rule, std::conditional_t<by_key, forget::per_key, forget::per_head>>>(f);
}

/// f(rule type) for a name. all = false leaves out what has_step() denies.
template <class Storage, bool all, class F>
void with_rule(rule_name r, F f) {
  switch (r.write) {
    case kind::mamba2: return with_write<Storage, kind::mamba2, Mamba2, all>(r, f);
    case kind::longhorn: return with_write<Storage, kind::longhorn, Longhorn, all>(r, f);
    case kind::delta: return with_write<Storage, kind::delta, GatedDeltaNet, all>(r, f);
    case kind::implicit_delta: return with_write<Storage, kind::implicit_delta, ImplicitGatedDeltaNet, all>(r, f);
    case kind::palimpsa: return with_write<Storage, kind::palimpsa, Palimpsa, all>(r, f);
    case kind::diagonal_kalman: return with_write<Storage, kind::diagonal_kalman, DiagonalKalman, all>(r, f);
    case kind::mesa_net: return with_write<Storage, kind::mesa_net, MesaNet, all>(r, f);
  }
}

// The named aliases are the points that with_forget reaches.
static_assert(std::is_same_v<LinearAttention, with_forget<Mamba2, forget::none>>);
static_assert(std::is_same_v<RetNet, with_forget<Mamba2, forget::constant>>);
static_assert(std::is_same_v<DeltaNet, with_forget<GatedDeltaNet, forget::none>>);
static_assert(std::is_same_v<ImplicitDeltaNet, with_forget<ImplicitGatedDeltaNet, forget::none>>);

}  // namespace

template <class Storage>
void run_scan(rule_name rule, sequential how, scan_inputs<Storage> const& in, scan_outputs<Storage> const& out, workspace scratch) {
  with_rule<Storage, true>(rule, [&]<class Rule>(std::type_identity<Rule>) { palimpsa::scan<Rule>(how, in, out, scratch); });
}

template <class Storage>
std::size_t scan_workspace(rule_name rule, sequential how, scan_inputs<Storage> const& in) {
  std::size_t size = 0;
  with_rule<Storage, true>(rule, [&]<class Rule>(std::type_identity<Rule>) { size = palimpsa::scan_workspace<Rule>(how, in); });
  return size;
}

template <class Storage>
void run_step(rule_name rule, sequential how, step_arguments<Storage> const& a, workspace scratch) {
  with_rule<Storage, false>(rule, [&]<class Rule>(std::type_identity<Rule>) { palimpsa::step<Rule>(how, a, scratch); });
}

template <class Storage>
std::size_t step_workspace(rule_name rule, sequential how, step_arguments<Storage> const& a) {
  std::size_t size = 0;
  with_rule<Storage, false>(rule, [&]<class Rule>(std::type_identity<Rule>) { size = palimpsa::step_workspace<Rule>(how, a); });
  return size;
}

#define PALIMPSA_TEST_SCAN(S)                                                                              \
  template void run_scan(rule_name, sequential, scan_inputs<S> const&, scan_outputs<S> const&, workspace); \
  template std::size_t scan_workspace(rule_name, sequential, scan_inputs<S> const&);
#define PALIMPSA_TEST_STEP(S)                                                         \
  template void run_step(rule_name, sequential, step_arguments<S> const&, workspace); \
  template std::size_t step_workspace(rule_name, sequential, step_arguments<S> const&);

PALIMPSA_TEST_SCAN(float)
PALIMPSA_TEST_SCAN(double)
PALIMPSA_TEST_SCAN(Eigen::bfloat16)
PALIMPSA_TEST_SCAN(Eigen::half)
PALIMPSA_TEST_STEP(float)
PALIMPSA_TEST_STEP(double)

}  // namespace palimpsa_test
