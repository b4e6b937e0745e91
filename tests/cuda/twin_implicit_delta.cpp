#include "cuda/twin_of.hpp"

namespace palimpsa_test {
PALIMPSA_TEST_INSTANTIATE_TWIN(kind::implicit_delta)
}  // namespace palimpsa_test
