// expect: sees_all of an evidence policy must be a static constexpr bool: whether seen reads the sum over the keys
#include "palimpsa/rule.hpp"

using namespace palimpsa;

struct half_seen {
#if defined(PALIMPSA_CONTROL)
  static constexpr bool sees_all = true;
#else
  static constexpr int sees_all = 2;  // not the number of terms
#endif
  template <class T> static T seen(T own, T all) { return (own + all) / 2; }
  template <class T> static slopes<T> slope(T, T) { return {unit<T>() / 2, unit<T>() / 2}; }
};

static_assert(!rule<memory::nothing, half_seen, gain::plain>::adds);
