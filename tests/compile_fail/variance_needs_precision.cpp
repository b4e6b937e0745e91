// expect: palimpsa::observe: only a diagonal memory has a variance per row
#include "palimpsa/instances/longhorn.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/recurrence.hpp"

using namespace palimpsa;

#if defined(PALIMPSA_CONTROL)
using candidate = Palimpsa;
#else
using candidate = Longhorn;
#endif

double variance_of_a_read() {
  double eta = 0, evidence = 0;
  double const key = 1, query = 1, alpha = 1;
  token<double> const x{&key, &query, &alpha};
  return observe<candidate, true>(serial_lanes{1}, &eta, &evidence, x, 1.0, 1.0, 1.0).variance;
}
