// Every rule in float, and three with 16-bit storage. See rules.hpp.

#include "palimpsa/storage_eigen.hpp"
#include "support/rules_dispatch.hpp"

PALIMPSA_TEST_SCAN(float)
PALIMPSA_TEST_SCAN(Eigen::bfloat16)
PALIMPSA_TEST_SCAN(Eigen::half)
PALIMPSA_TEST_STEP(float)
