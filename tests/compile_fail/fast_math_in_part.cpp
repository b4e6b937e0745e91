// expect: compiled with -ffast-math or a part of it: checks no longer see a NaN
// under each of: -funsafe-math-optimizations -freciprocal-math
// of: GNU (clang++ 14 shows no macro)
#if defined(PALIMPSA_CONTROL)
#define PALIMPSA_ALLOW_FAST_MATH
#endif
#include "palimpsa/view.hpp"

static_assert(palimpsa::view<float>{}.rank == 0);
