// expect: palimpsa: q, k, v, out must have a stored type: float, double
#include "palimpsa/arguments.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
scan_inputs<float> in;
#else
scan_inputs<long> in;
#endif
