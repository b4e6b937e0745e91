// expect: a full memory makes the write exact: name evidence::full and gain::exact
#include "palimpsa/rule.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
using candidate = rule<memory::full, evidence::full, gain::exact>;
#else
using candidate = rule<memory::full, evidence::diagonal, gain::exact>;
#endif

static_assert(candidate::keeps_full);
