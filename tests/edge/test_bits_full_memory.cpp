// See bits.hpp. Planted and caught: a gate that calls of one token round otherwise.

#include "edge/bits.hpp"
#include "palimpsa/instances/mesa_net.hpp"

using namespace palimpsa_test;

TEST_CASE("MesaNet: a cut, n calls and few calls are one scan, bit by bit") {
  hold_bits_of_write<palimpsa::MesaNet, float>("MesaNet");
  hold_bits_of_write<palimpsa::MesaNet, double>("MesaNet");
}
