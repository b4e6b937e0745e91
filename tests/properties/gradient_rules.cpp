// scan_backward of the rules these tests use: one for each way the pass goes.

#include <stdexcept>
#include <type_traits>

#include "instances/backward_rules.hpp"
#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/scan_backward.hpp"

namespace palimpsa_test {
namespace {

using namespace palimpsa;

template <class F>
void with_rule(rule_name r, F f) {
  switch (r.write) {
    case kind::mamba2: return f(std::type_identity<RetNet>{});
    case kind::delta: return f(std::type_identity<with_forget<GatedDeltaNet, forget::per_key>>{});
    case kind::palimpsa: return f(std::type_identity<Palimpsa>{});
    case kind::diagonal_kalman: return f(std::type_identity<DiagonalKalman>{});
    case kind::mesa_net: return f(std::type_identity<MesaNet>{});
    default: throw std::logic_error("not among the rules of the gradient properties");
  }
}

}  // namespace

template <class Storage>
void run_backward(rule_name rule, checkpointed how, scan_inputs<Storage> const& in, scan_cotangents<Storage> const& up,
                  scan_gradients<Storage> const& down, workspace scratch) {
  with_rule(rule, [&]<class R>(std::type_identity<R>) { scan_backward<R>(how, in, up, down, scratch); });
}

template <class Storage>
std::size_t backward_workspace(rule_name rule, checkpointed how, scan_inputs<Storage> const& in) {
  std::size_t bytes = 0;
  with_rule(rule, [&]<class R>(std::type_identity<R>) { bytes = scan_backward_workspace<R>(how, in); });
  return bytes;
}

template void run_backward(rule_name, checkpointed, scan_inputs<float> const&, scan_cotangents<float> const&,
                           scan_gradients<float> const&, workspace);
template std::size_t backward_workspace(rule_name, checkpointed, scan_inputs<float> const&);

}  // namespace palimpsa_test
