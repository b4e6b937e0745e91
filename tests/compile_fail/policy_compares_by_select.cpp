// expect: a comparison in a policy has an answer a row: write select\(a < b, x, y\)
#include "palimpsa/elementwise.hpp"
#include "palimpsa/pack.hpp"

using namespace palimpsa;

struct capped {
  template <class Lanes, class T> static T at(Lanes lanes, T own, T) {
    T const s = lanes.reciprocal(1 + own);
#if defined(PALIMPSA_CONTROL)
    return select(s < 0.5, s, 0.5);
#else
    return s < 0.5 ? s : T{} + 0.5;  // right for a number
#endif
  }
};

struct lanes {
  template <class T> T reciprocal(T x) const { return 1 / x; }
};

double one_row() { return capped::at(lanes{}, 1.0, 0.0); }
using rows = pack<double, 2>;
rows many_rows(rows own) { return capped::at(lanes{}, own, rows{}); }
