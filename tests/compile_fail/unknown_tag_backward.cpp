// expect: palimpsa::scan_backward: the first argument must be an execution tag: palimpsa::checkpointed
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/scan_backward.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
using tag = checkpointed;
#else
using tag = sequential;
#endif

void run(scan_inputs<float> const& in, scan_cotangents<float> const& up, scan_gradients<float> const& down) {
  scan_backward<Palimpsa>(tag{}, in, up, down, allocate);
}
