// expect: palimpsa::step: the first argument must be an execution tag: palimpsa::sequential
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/step.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
using tag = sequential;
#else
using tag = chunked;
#endif

void run(step_arguments<float> const& a) { step<Palimpsa>(tag{}, a, allocate); }
