// expect: sees_all of a gain policy must be a static constexpr bool: whether at reads the sum over the keys
#include "palimpsa/rule.hpp"

using namespace palimpsa;

struct bounded {
#if defined(PALIMPSA_CONTROL)
  static constexpr bool sees_all = true;
#else
  static inline bool sees_all = true;  // no `if constexpr` can ask it
#endif
  template <class Lanes, class T> static T at(Lanes lanes, T, T all) { return lanes.reciprocal(2 + all); }
  template <class Lanes, class T> static slopes<T> slope(Lanes lanes, T, T all) {
    T const s = lanes.reciprocal(2 + all);
    return {T{}, -(s * s)};
  }
};

static_assert(!rule<memory::nothing, evidence::full, bounded>::adds);
