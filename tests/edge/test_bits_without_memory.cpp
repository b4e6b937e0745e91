// See bits.hpp.

#include "edge/bits.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/longhorn.hpp"

using namespace palimpsa_test;

TEST_CASE("Mamba2 and Longhorn: a cut, n calls and few calls are one scan, bit by bit") {
  hold_bits_of_write<palimpsa::Mamba2, float>("Mamba2");
  hold_bits_of_write<palimpsa::Mamba2, double>("Mamba2");
  hold_bits_of_write<palimpsa::Longhorn, float>("Longhorn");
  hold_bits_of_write<palimpsa::Longhorn, double>("Longhorn");
}
