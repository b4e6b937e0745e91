// expect: an evidence policy needs sees_all, seen\(own, all\) and slope\(own, all\)
#include "palimpsa/rule.hpp"

using namespace palimpsa;

struct half_seen {
  static constexpr bool sees_all = true;
  template <class T> static T seen(T, T all) { return all / 2; }
#if defined(PALIMPSA_CONTROL)
  template <class T> static slopes<T> slope(T, T) { return {T{}, unit<T>() / 2}; }
#endif
};

static_assert(!rule<memory::nothing, half_seen, gain::exact>::adds);
