// expect: a full memory forgets with one gate a head: a gate per key would break the symmetry of J
#include "palimpsa/instances/mesa_net.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
using candidate = with_forget<MesaNet, forget::none>;
#else
using candidate = with_forget<MesaNet, forget::per_key>;
#endif

static_assert(candidate::keeps_full);
