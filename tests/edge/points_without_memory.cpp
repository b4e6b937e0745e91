#include "edge/engine_of.hpp"
#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/longhorn.hpp"
#include "palimpsa/instances/mamba2.hpp"

namespace palimpsa_test {

std::vector<engine> engines_without_memory() {
  using namespace palimpsa;
  return {engine_of<Mamba2>("Mamba2"), engine_of<Longhorn>("Longhorn"), engine_of<GatedDeltaNet>("GatedDeltaNet"),
          engine_of<ImplicitGatedDeltaNet>("ImplicitGatedDeltaNet"),
          engine_of<with_weighting<ImplicitGatedDeltaNet, weighting::preweighted>>("ImplicitGatedDeltaNet preweighted")};
}

}  // namespace palimpsa_test
