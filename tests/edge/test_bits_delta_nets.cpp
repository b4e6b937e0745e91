// See bits.hpp.

#include "edge/bits.hpp"
#include "palimpsa/instances/delta_net.hpp"

using namespace palimpsa_test;

TEST_CASE("The DeltaNets: a cut, n calls and few calls are one scan, bit by bit") {
  hold_bits_of_write<palimpsa::GatedDeltaNet, float>("GatedDeltaNet");
  hold_bits_of_write<palimpsa::GatedDeltaNet, double>("GatedDeltaNet");
  hold_bits_of_write<palimpsa::ImplicitGatedDeltaNet, float>("ImplicitGatedDeltaNet");
  hold_bits_of_write<palimpsa::ImplicitGatedDeltaNet, double>("ImplicitGatedDeltaNet");
}
