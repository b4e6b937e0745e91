#pragma once
// How far a result may be from the right one: a visible multiple of the precision of the arithmetic, per tensor.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "support/catch.hpp"
#include "support/problem.hpp"

namespace palimpsa_test {

/// ‖x - right‖₂ / max(‖right‖₂, 1e-30 √n); infinite where x is not finite or has another size.
inline double relative_error(numbers const& x, numbers const& right) {
  if (x.size() != right.size()) return std::numeric_limits<double>::infinity();
  if (x.empty()) return 0;
  double size = 0;  // the norms are taken relative to the largest element, so that squares of 1e±200 do not matter
  for (double r : right) size = (std::max)(size, std::fabs(r));
  if (size == 0) size = 1e-30;
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<double>::infinity();
    error += (x[i] - right[i]) / size * ((x[i] - right[i]) / size);
    norm += right[i] / size * (right[i] / size);
  }
  return std::sqrt(error) / (std::max)(std::sqrt(norm), 1e-30 / size * std::sqrt(static_cast<double>(x.size())));
}

/// The bound of arithmetic in Scalar over n tokens, and over systems of this condition.
template <class Scalar> double arithmetic_bound(std::int64_t n, double condition = 1) {
  double const plain = sizeof(Scalar) == 8
                           ? 1e-12
                           : (std::min)(5e-7 * std::sqrt(static_cast<double>((std::max)(n, std::int64_t{1}))), 1e-5);
  return (std::max)(plain, 8 * static_cast<double>(std::numeric_limits<Scalar>::epsilon()) * condition);
}

}  // namespace palimpsa_test

/// CHECKs one tensor against its right values.
#define PALIMPSA_TEST_CLOSE(what, x, right, bound)                          \
  do {                                                                      \
    double const error_ = palimpsa_test::relative_error(x, right);          \
    INFO((what) << ": relative error " << error_ << ", bound " << (bound)); \
    CHECK(error_ <= (bound));                                               \
  } while (false)
