#pragma once
// Numbers of 113 bits, and a tape that differentiates whatever is computed with them: 33 digits, so that a formula may cancel 20 of
// them and still be right where float and double are tried.

#include <cstddef>
#include <vector>

namespace palimpsa_test {

#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 quad;
#else
using quad = long double;  // 113 bits on AArch64
#endif

/// eˣ for x ≤ 0, -inf included: halved until it is small, summed, squared back.
inline quad quad_exp(double x) {
  if (x < -11000) return 0;
  int halvings = 0;
  quad small = static_cast<quad>(x);
  for (; small < -quad(1) / 16; small /= 2) ++halvings;
  quad sum = 1, term = 1;
  for (int n = 1; n < 28; ++n) term *= small / n, sum += term;
  for (; halvings > 0; --halvings) sum *= sum;
  return sum;
}

/// What was computed, operation by operation, with the slope of each along its operands.
class tape {
 public:
  static constexpr int constant = -1;

  int add(int a, quad slope_a, int b = constant, quad slope_b = 0) {
    steps_.push_back({a, b, slope_a, slope_b});
    return static_cast<int>(steps_.size()) - 1;
  }
  void clear() { steps_.clear(); }

  /// ∂y/∂x of every x on the tape.
  std::vector<quad> slopes_of(int y) const {
    std::vector<quad> d(steps_.size());
    if (y != constant) d[static_cast<std::size_t>(y)] = 1;
    for (std::size_t i = steps_.size(); i-- > 0;) {
      step const& s = steps_[i];
      if (s.a != constant) d[static_cast<std::size_t>(s.a)] += d[i] * s.slope_a;
      if (s.b != constant) d[static_cast<std::size_t>(s.b)] += d[i] * s.slope_b;
    }
    return d;
  }

 private:
  struct step {
    int a, b;
    quad slope_a, slope_b;
  };
  std::vector<step> steps_;
};

/// The tape that traced numbers are written on.
inline tape& the_tape() {
  static tape one;
  return one;
}

/// A number that leaves a trace.
struct traced {
  quad value = 0;
  int id = tape::constant;

  traced() = default;
  traced(quad x) : value(x) {}
  static traced input(quad x) {
    traced y(x);
    y.id = the_tape().add(tape::constant, 0);
    return y;
  }

  friend traced operator+(traced a, traced b) { return of(a.value + b.value, a, 1, b, 1); }
  friend traced operator-(traced a, traced b) { return of(a.value - b.value, a, 1, b, -1); }
  friend traced operator*(traced a, traced b) { return of(a.value * b.value, a, b.value, b, a.value); }
  friend traced operator/(traced a, traced b) {
    quad const y = a.value / b.value;
    return of(y, a, 1 / b.value, b, -y / b.value);
  }

 private:
  static traced of(quad y, traced a, quad slope_a, traced b, quad slope_b) {
    traced x(y);
    if (a.id != tape::constant || b.id != tape::constant) x.id = the_tape().add(a.id, slope_a, b.id, slope_b);
    return x;
  }
};

}  // namespace palimpsa_test
