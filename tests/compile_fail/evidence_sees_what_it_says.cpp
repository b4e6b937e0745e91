// expect: seen\(own, all\) of this evidence policy changes with all, but its sees_all is false: all would be zero
#include "palimpsa/rule.hpp"

using namespace palimpsa;

struct half_seen {
#if defined(PALIMPSA_CONTROL)
  static constexpr bool sees_all = true;
#else
  static constexpr bool sees_all = false;
#endif
  template <class T> static constexpr T seen(T own, T all) { return (own + all) / 2; }
  template <class T> static constexpr slopes<T> slope(T, T) { return {unit<T>() / 2, unit<T>() / 2}; }
};

static_assert(!rule<memory::nothing, half_seen, gain::plain>::adds);
