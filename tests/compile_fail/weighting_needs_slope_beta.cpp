// expect: a weighting policy needs write\(beta, v\), slope_v\(beta, v\) and slope_beta\(beta, v\)
#include "palimpsa/rule.hpp"

using namespace palimpsa;

struct doubled {
  template <class T> static T write(T beta, T v) { return 2 * beta * v; }
  template <class T> static T slope_v(T beta, T) { return 2 * beta; }
#if defined(PALIMPSA_CONTROL)
  template <class T> static T slope_beta(T, T v) { return 2 * v; }
#endif
};

static_assert(rule<memory::nothing, evidence::nothing, gain::plain, forget::per_head, doubled>::adds);
