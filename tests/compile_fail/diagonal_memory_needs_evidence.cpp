// expect: a diagonal memory must correct its mean: name evidence::diagonal or evidence::full
#include "palimpsa/rule.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
using candidate = rule<memory::diagonal, evidence::full, gain::plain>;
#else
using candidate = rule<memory::diagonal, evidence::nothing, gain::plain>;
#endif

static_assert(candidate::keeps_diagonal);
