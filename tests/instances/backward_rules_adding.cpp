// The rules whose write is a bare sum, in double. See backward_rules.hpp.

#include "instances/backward_dispatch.hpp"

PALIMPSA_TEST_BACKWARD(double, mamba2, Mamba2)
PALIMPSA_TEST_BACKWARD(double, palimpsa, Palimpsa)
PALIMPSA_TEST_BACKWARD(double, mesa_net, MesaNet)
