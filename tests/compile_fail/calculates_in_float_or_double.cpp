// expect: palimpsa: the library calculates in float or double
#include "palimpsa/arguments.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
scan_inputs<float, double> in;
#else
scan_inputs<float, long double> in;
#endif
