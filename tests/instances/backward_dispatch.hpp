#pragma once
// From a rule_name to the template it names. Included by backward_rules_*.cpp alone; see backward_rules.hpp.

#include <stdexcept>
#include <type_traits>

#include "instances/backward_rules.hpp"
#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/longhorn.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/scan_backward.hpp"

namespace palimpsa_test {
namespace dispatch {

using namespace palimpsa;

/// One write: the calls of all its points.
template <class Storage, kind write, class Rule>
struct backward_of {
  template <class F>
  static void call(rule_name r, F f) {
    constexpr bool by_key = has_backward<Storage>({write, gates::key}), ungated = has_backward<Storage>({write, gates::none});
    constexpr bool constant = has_backward<Storage>({write, gates::constant});
    constexpr bool weighted = has_backward<Storage>({write, gates::head, true});
    if constexpr (weighted)
      if (r.preweighted) return f(std::type_identity<with_weighting<Rule, weighting::preweighted>>{});
    if constexpr (by_key)
      if (r.forget == gates::key) return f(std::type_identity<with_forget<Rule, forget::per_key>>{});
    if constexpr (ungated)
      if (r.forget == gates::none) return f(std::type_identity<with_forget<Rule, forget::none>>{});
    if constexpr (constant)
      if (r.forget == gates::constant) return f(std::type_identity<with_forget<Rule, forget::constant>>{});
    if constexpr (has_backward<Storage>({write}))
      if (r.forget == gates::head && !r.preweighted) return f(std::type_identity<Rule>{});
    throw std::logic_error("the tests do not instantiate scan_backward of this rule for this type");
  }
};

/// One write's calls, defined in one unit.
template <class Storage, kind write>
struct backward_entry {
  static void run(rule_name rule, checkpointed how, scan_inputs<Storage> const& in, scan_cotangents<Storage> const& up,
                  scan_gradients<Storage> const& down, workspace scratch);
  static std::size_t size(rule_name rule, checkpointed how, scan_inputs<Storage> const& in);
};

}  // namespace dispatch
}  // namespace palimpsa_test

/// Defines the calls of one write.
#define PALIMPSA_TEST_BACKWARD(S, KIND, RULE)                                                                           \
  template <>                                                                                                           \
  void palimpsa_test::dispatch::backward_entry<S, palimpsa_test::kind::KIND>::run(                                      \
      palimpsa_test::rule_name rule, palimpsa::checkpointed how, palimpsa::scan_inputs<S> const& in,                    \
      palimpsa::scan_cotangents<S> const& up, palimpsa::scan_gradients<S> const& down, palimpsa::workspace scratch) {   \
    backward_of<S, palimpsa_test::kind::KIND, palimpsa::RULE>::call(rule, [&]<class R>(std::type_identity<R>) {         \
      palimpsa::scan_backward<R>(how, in, up, down, scratch);                                                           \
    });                                                                                                                 \
  }                                                                                                                     \
  template <>                                                                                                           \
  std::size_t palimpsa_test::dispatch::backward_entry<S, palimpsa_test::kind::KIND>::size(                              \
      palimpsa_test::rule_name rule, palimpsa::checkpointed how, palimpsa::scan_inputs<S> const& in) {                  \
    std::size_t bytes = 0;                                                                                              \
    backward_of<S, palimpsa_test::kind::KIND, palimpsa::RULE>::call(rule, [&]<class R>(std::type_identity<R>) {         \
      bytes = palimpsa::scan_backward_workspace<R>(how, in);                                                            \
    });                                                                                                                 \
    return bytes;                                                                                                       \
  }
