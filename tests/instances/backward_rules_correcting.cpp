// The rules whose write is a correction, in double. See backward_rules.hpp.

#include "instances/backward_dispatch.hpp"

PALIMPSA_TEST_BACKWARD(double, longhorn, Longhorn)
PALIMPSA_TEST_BACKWARD(double, delta, GatedDeltaNet)
PALIMPSA_TEST_BACKWARD(double, implicit_delta, ImplicitGatedDeltaNet)
PALIMPSA_TEST_BACKWARD(double, diagonal_kalman, DiagonalKalman)
