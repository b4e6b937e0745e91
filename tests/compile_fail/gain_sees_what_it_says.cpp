// expect: at\(lanes, own, all\) of this gain policy changes with all, but its sees_all is false: all would be zero
#include "palimpsa/rule.hpp"

using namespace palimpsa;

struct half_step {
#if defined(PALIMPSA_CONTROL)
  static constexpr bool sees_all = true;
#else
  static constexpr bool sees_all = false;
#endif
  template <class Lanes, class T> static constexpr T at(Lanes lanes, T, T all) { return lanes.reciprocal(2 + all); }
  template <class Lanes, class T> static constexpr slopes<T> slope(Lanes lanes, T own, T all) {
    T const s = at(lanes, own, all);
    return {T{}, -(s * s)};
  }
};

static_assert(!rule<memory::nothing, evidence::full, half_step>::adds);
