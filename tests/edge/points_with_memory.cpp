#include "edge/engine_of.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"

namespace palimpsa_test {

std::vector<engine> engines_with_memory() {
  using namespace palimpsa;
  return {engine_of<Palimpsa>("Palimpsa"), engine_of<with_weighting<Palimpsa, weighting::preweighted>>("Palimpsa preweighted"),
          engine_of<DiagonalKalman>("DiagonalKalman"),
          engine_of<with_weighting<DiagonalKalman, weighting::preweighted>>("DiagonalKalman preweighted"), engine_of<MesaNet>("MesaNet")};
}

}  // namespace palimpsa_test
