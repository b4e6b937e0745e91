// See bits.hpp.

#include "edge/bits.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"

using namespace palimpsa_test;

TEST_CASE("Palimpsa and DiagonalKalman: a cut, n calls and few calls are one scan, bit by bit") {
  hold_bits_of_write<palimpsa::Palimpsa, float>("Palimpsa");
  hold_bits_of_write<palimpsa::Palimpsa, double>("Palimpsa");
  hold_bits_of_write<palimpsa::DiagonalKalman, float>("DiagonalKalman");
  hold_bits_of_write<palimpsa::DiagonalKalman, double>("DiagonalKalman");
}
