// expect: the first axis must be memory::nothing, memory::diagonal or memory::full
#include "palimpsa/rule.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
using candidate = rule<memory::diagonal, evidence::full, gain::exact>;
#else
using candidate = rule<evidence::full, memory::diagonal, gain::exact>;  // first and second axis exchanged
#endif

static_assert(!candidate::keeps_full);
