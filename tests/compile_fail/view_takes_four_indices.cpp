// expect: palimpsa::view: at most four indices
#include "palimpsa/view.hpp"

float first(palimpsa::view<float> v) {
#if defined(PALIMPSA_CONTROL)
  return v(0, 0, 0, 0);
#else
  return v(0, 0, 0, 0, 0);
#endif
}
