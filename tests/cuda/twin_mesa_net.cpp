#include "cuda/twin_of.hpp"

namespace palimpsa_test {
PALIMPSA_TEST_INSTANTIATE_TWIN(kind::mesa_net)
}  // namespace palimpsa_test
