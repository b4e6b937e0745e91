#include "edge/engine_of.hpp"
#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/longhorn.hpp"
#include "palimpsa/instances/palimpsa.hpp"

namespace palimpsa_test {

std::vector<engine> engines_gated_per_key() {
  using namespace palimpsa;
  return {engine_of<with_forget<Longhorn, forget::per_key>>("Longhorn per key"),
          engine_of<with_forget<ImplicitGatedDeltaNet, forget::per_key>>("ImplicitGatedDeltaNet per key"),
          engine_of<with_forget<Palimpsa, forget::per_key>>("Palimpsa per key"),
          engine_of<with_forget<DiagonalKalman, forget::per_key>>("DiagonalKalman per key")};
}

}  // namespace palimpsa_test
