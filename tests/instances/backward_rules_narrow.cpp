// One rule of each memory with 16-bit storage, and the way from a name to the units that define the calls. See backward_rules.hpp.

#include "instances/backward_dispatch.hpp"
#include "palimpsa/storage_eigen.hpp"

PALIMPSA_TEST_BACKWARD(Eigen::bfloat16, delta, GatedDeltaNet)
PALIMPSA_TEST_BACKWARD(Eigen::bfloat16, palimpsa, Palimpsa)
PALIMPSA_TEST_BACKWARD(Eigen::bfloat16, mesa_net, MesaNet)
PALIMPSA_TEST_BACKWARD(Eigen::half, delta, GatedDeltaNet)
PALIMPSA_TEST_BACKWARD(Eigen::half, palimpsa, Palimpsa)
PALIMPSA_TEST_BACKWARD(Eigen::half, mesa_net, MesaNet)

namespace palimpsa_test {
namespace {

/// f(the calls of this write).
template <class Storage, class F>
void with_entry(rule_name r, F f) {
  auto const call = [&]<kind write>(std::integral_constant<kind, write>) {
    if constexpr (has_backward<Storage>({write}))
      f(dispatch::backward_entry<Storage, write>{});
    else
      throw std::logic_error("the tests do not instantiate scan_backward of this rule for this type");
  };
  switch (r.write) {
    case kind::mamba2: return call(std::integral_constant<kind, kind::mamba2>{});
    case kind::longhorn: return call(std::integral_constant<kind, kind::longhorn>{});
    case kind::delta: return call(std::integral_constant<kind, kind::delta>{});
    case kind::implicit_delta: return call(std::integral_constant<kind, kind::implicit_delta>{});
    case kind::palimpsa: return call(std::integral_constant<kind, kind::palimpsa>{});
    case kind::diagonal_kalman: return call(std::integral_constant<kind, kind::diagonal_kalman>{});
    case kind::mesa_net: return call(std::integral_constant<kind, kind::mesa_net>{});
  }
}

}  // namespace

template <class Storage>
void run_backward(rule_name rule, palimpsa::checkpointed how, palimpsa::scan_inputs<Storage> const& in,
                  palimpsa::scan_cotangents<Storage> const& up, palimpsa::scan_gradients<Storage> const& down,
                  palimpsa::workspace scratch) {
  with_entry<Storage>(rule, [&](auto entry) { entry.run(rule, how, in, up, down, scratch); });
}

template <class Storage>
std::size_t backward_workspace(rule_name rule, palimpsa::checkpointed how, palimpsa::scan_inputs<Storage> const& in) {
  std::size_t bytes = 0;
  with_entry<Storage>(rule, [&](auto entry) { bytes = entry.size(rule, how, in); });
  return bytes;
}

#define PALIMPSA_TEST_BACKWARD_CALLS(S)                                                                                  \
  template void run_backward(rule_name, palimpsa::checkpointed, palimpsa::scan_inputs<S> const&,                        \
                             palimpsa::scan_cotangents<S> const&, palimpsa::scan_gradients<S> const&, palimpsa::workspace); \
  template std::size_t backward_workspace(rule_name, palimpsa::checkpointed, palimpsa::scan_inputs<S> const&);
PALIMPSA_TEST_BACKWARD_CALLS(float)
PALIMPSA_TEST_BACKWARD_CALLS(double)
PALIMPSA_TEST_BACKWARD_CALLS(Eigen::bfloat16)
PALIMPSA_TEST_BACKWARD_CALLS(Eigen::half)

}  // namespace palimpsa_test
