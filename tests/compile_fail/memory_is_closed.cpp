// expect: the first axis must be memory::nothing, memory::diagonal or memory::full
#include "palimpsa/rule.hpp"

using namespace palimpsa;

struct low_rank {};  // a memory of the user's own: it would need a layout that no path knows

#if defined(PALIMPSA_CONTROL)
using candidate = rule<memory::nothing, evidence::full, gain::exact>;
#else
using candidate = rule<low_rank, evidence::full, gain::exact>;
#endif

static_assert(!candidate::keeps_full);
