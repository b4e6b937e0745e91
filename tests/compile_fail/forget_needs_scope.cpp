// expect: a forget policy needs scope, retain\(log_decay\) and slope\(log_decay, alpha\)
#include "palimpsa/rule.hpp"

using namespace palimpsa;

struct slow : forget::exponential {
#if defined(PALIMPSA_CONTROL)
  static constexpr gate_scope scope = gate_scope::head;
#endif
};

static_assert(rule<memory::nothing, evidence::nothing, gain::plain, slow>::adds);
