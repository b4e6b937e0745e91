#include "edge/engine_of.hpp"

namespace palimpsa_test {

std::vector<engine> engines_of_a_user() {
  using namespace palimpsa;
  using memory::diagonal;
  using memory::nothing;
  return {engine_of<rule<nothing, evidence::nothing, gain::exact>>("nothing-nothing-exact"),
          engine_of<rule<nothing, evidence::diagonal, gain::elementwise, forget::constant>>("nothing-diagonal-elementwise constant"),
          engine_of<rule<nothing, evidence::diagonal, gain::plain, forget::none>>("nothing-diagonal-plain ungated"),
          engine_of<rule<diagonal, evidence::diagonal, gain::exact>>("diagonal-diagonal-exact"),
          engine_of<rule<diagonal, evidence::diagonal, gain::plain>>("diagonal-diagonal-plain"),
          engine_of<rule<diagonal, evidence::full, gain::elementwise>>("diagonal-full-elementwise")};
}

}  // namespace palimpsa_test
