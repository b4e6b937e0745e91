// Every rule in double. See rules.hpp.

#include "support/rules_dispatch.hpp"

PALIMPSA_TEST_SCAN(double)
PALIMPSA_TEST_STEP(double)
