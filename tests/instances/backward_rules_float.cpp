// Every rule in float. See backward_rules.hpp.

#include "instances/backward_dispatch.hpp"

PALIMPSA_TEST_BACKWARD(float, mamba2, Mamba2)
PALIMPSA_TEST_BACKWARD(float, longhorn, Longhorn)
PALIMPSA_TEST_BACKWARD(float, delta, GatedDeltaNet)
PALIMPSA_TEST_BACKWARD(float, implicit_delta, ImplicitGatedDeltaNet)
PALIMPSA_TEST_BACKWARD(float, palimpsa, Palimpsa)
PALIMPSA_TEST_BACKWARD(float, diagonal_kalman, DiagonalKalman)
PALIMPSA_TEST_BACKWARD(float, mesa_net, MesaNet)
