// expect: a gain policy needs sees_all, at\(lanes, own, all\) and slope\(lanes, own, all\)
#include "palimpsa/rule.hpp"

using namespace palimpsa;

struct bounded {
  static constexpr bool sees_all = true;
#if defined(PALIMPSA_CONTROL)
  template <class Lanes, class T> static T at(Lanes lanes, T, T all) { return lanes.reciprocal(2 + all); }
#endif
  template <class Lanes, class T> static slopes<T> slope(Lanes lanes, T, T all) {
    T const s = lanes.reciprocal(2 + all);
    return {T{}, -(s * s)};
  }
};

static_assert(!rule<memory::nothing, evidence::full, bounded>::adds);
