// expect: a full memory forgets with one gate a head: a gate per key would break the symmetry of J
#include "palimpsa/rule.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
using candidate = rule<memory::full, evidence::full, gain::exact, forget::constant>;
#else
using candidate = rule<memory::full, evidence::full, gain::exact, forget::per_key>;
#endif

static_assert(candidate::keeps_full);
