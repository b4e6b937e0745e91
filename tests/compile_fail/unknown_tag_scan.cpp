// expect: palimpsa::scan: the first argument must be an execution tag: palimpsa::sequential
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/scan.hpp"

using namespace palimpsa;

struct vectorised {};

#if defined(PALIMPSA_CONTROL)
using tag = sequential;
#else
using tag = vectorised;
#endif

void run(scan_inputs<float> const& in, scan_outputs<float> const& out, workspace scratch) {
  scan<Palimpsa>(tag{}, in, out, scratch);
  scan<Palimpsa>(tag{}, in, out, allocate);
}
