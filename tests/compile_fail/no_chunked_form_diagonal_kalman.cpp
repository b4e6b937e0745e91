// expect: this rule has no chunked form \(see palimpsa::chunked_form\); use palimpsa::sequential
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/scan_chunked.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
using candidate = Palimpsa;
#else
using candidate = DiagonalKalman;
#endif

void run(scan_inputs<float> const& in, scan_outputs<float> const& out, workspace scratch) {
  scan<candidate>(chunked{}, in, out, scratch);
}
