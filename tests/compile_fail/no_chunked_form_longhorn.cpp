// expect: this rule has no chunked form \(see palimpsa::chunked_form\); use palimpsa::sequential
#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/longhorn.hpp"
#include "palimpsa/scan_chunked.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
using candidate = GatedDeltaNet;
#else
using candidate = Longhorn;
#endif

void run(scan_inputs<float> const& in, scan_outputs<float> const& out, workspace scratch) {
  scan<candidate>(chunked{}, in, out, scratch);
}
