#pragma once
/// @file
/// Whether two elements of a strided tensor are one, decided exactly: is there a step d ≠ 0, |d_a| < extent_a, with Σ d_a·stride_a = 0?
///
/// Axes that must have d_a = 0 are taken out: the widest, if its stride exceeds what all narrower ones span together, and any whose
/// stride meets no multiple of the others' common divisor in time. What tensors of any use leave is nothing. Of what is left, the two
/// longest axes are solved in closed form (a line of integers through a box) for every step along the others.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/detail/size.hpp"
#include "palimpsa/view.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// What is known of the elements of a tensor.
enum class overlap {
  none,      ///< every element has memory of its own
  found,     ///< two elements are one
  undecided  ///< telling would take more than 2²⁰ steps
};

/// The answer, and the two elements.
struct overlap_answer {
  overlap kind = overlap::none;  ///< whether there are two such elements
  std::int64_t first[4] = {};    ///< indices of an element
  std::int64_t second[4] = {};   ///< and of another in the same place
};

namespace detail {

/// One axis of the search.
struct overlap_axis {
  std::int64_t stride = 0;  ///< > 0
  std::int64_t most = 0;    ///< |d| ≤ most, > 0
  int axis = 0;             ///< of the tensor
  bool backward = false;    ///< the tensor's own stride is negative
};

/// a·b mod m for 0 ≤ a, b < m, without a product that wraps.
constexpr std::int64_t product_modulo(std::int64_t a, std::int64_t b, std::int64_t m) {
  if (m <= std::int64_t{1} << 31) return a * b % m;
  std::int64_t result = 0;
  for (; b > 0; b /= 2) {
    if (b % 2 == 1) result = result >= m - a ? result - (m - a) : result + a;
    a = a >= m - a ? a - (m - a) : a + a;
  }
  return result;
}

/// x with a·x ≡ 1 modulo m, for coprime a and m; 0 for m = 1.
constexpr std::int64_t inverse_modulo(std::int64_t a, std::int64_t m) {
  std::int64_t previous = m, rest = a % m, before = 0, x = 1;
  while (rest != 0) {
    std::int64_t const quotient = previous / rest;
    previous = std::exchange(rest, previous % rest);
    before = std::exchange(x, before - quotient * x);
  }
  return before < 0 ? before + m : before % m;
}

/// Integers (x, y) with a·x + b·y = r, |x| ≤ X, |y| ≤ Y, for two axes known in advance.
class box_line {
 public:
  /// a, b > 0.
  box_line(overlap_axis const& x, overlap_axis const& y)
      : common_(std::gcd(x.stride, y.stride)), a_(x.stride / common_), b_(y.stride / common_), X_(x.most), Y_(y.most),
        inverse_(inverse_modulo(a_ % b_, b_)) {}

  /// Writes a solution if there is one; for r = 0 one that is not zero.
  bool solve(std::int64_t r, std::int64_t& x, std::int64_t& y) const {
    if (r % common_ != 0) return false;
    r /= common_;
    if (r == 0) {
      x = b_, y = -a_;
      return b_ <= X_ && a_ <= Y_;
    }
    // x ≡ r/a modulo b; of those the ones with (r - bY)/a ≤ x ≤ (r + bY)/a.
    std::int64_t const residue = product_modulo((r % b_ + b_) % b_, inverse_, b_);
    std::int64_t const low = (std::max)(-X_, up(r - b_ * Y_)), high = (std::min)(X_, down(r + b_ * Y_));
    std::int64_t const above = ((residue - low) % b_ + b_) % b_;
    if (low > high || above > high - low) return false;
    x = low + above;
    y = (r - a_ * x) / b_;
    return true;
  }

 private:
  std::int64_t down(std::int64_t n) const { return n / a_ - (n % a_ < 0 ? 1 : 0); }  // ⌊n/a⌋
  std::int64_t up(std::int64_t n) const { return n / a_ + (n % a_ > 0 ? 1 : 0); }    // ⌈n/a⌉

  std::int64_t common_, a_, b_, X_, Y_, inverse_;
};

/// The axes of a tensor that could take part in a collision.
class overlap_search {
 public:
  /// Extents of 1 take no part. Strides of 0 are another fault, and not looked for.
  template <class T>
  explicit overlap_search(view<T> const& tensor) {
    for (int a = 0; a < tensor.rank; ++a)
      if (tensor.extent[a] > 1)
        axes_[count_++] = {checked::magnitude(tensor.stride[a]), tensor.extent[a] - 1, a, tensor.stride[a] < 0};
    while (drop_widest() || drop_alone()) {
    }
  }

  /// Runs it.
  overlap_answer run() {
    overlap_answer answer;
    if (count_ == 0) return answer;  // one axis never collides with itself, and is dropped as the widest
    sort_by_length();
    std::int64_t const steps = checked::product(count_ > 2 ? axes_[0].most + 1 : 1, count_ > 3 ? 2 * axes_[1].most + 1 : 1);
    if (steps > std::int64_t{1} << 20) {
      answer.kind = overlap::undecided;
      return answer;
    }
    std::int64_t d[4] = {};
    if (search(d)) {
      answer.kind = overlap::found;
      for (int i = 0; i < count_; ++i) {
        std::int64_t const step = axes_[i].backward ? -d[i] : d[i];
        (step > 0 ? answer.first : answer.second)[axes_[i].axis] = checked::magnitude(step);
      }
    }
    return answer;
  }

 private:
  std::int64_t span(int but) const {
    std::int64_t all = 0;
    for (int i = 0; i < count_; ++i)
      if (i != but) all += axes_[i].stride * axes_[i].most;
    return all;
  }
  void drop(int i) { axes_[i] = axes_[--count_]; }

  bool drop_widest() {
    int widest = 0;
    for (int i = 1; i < count_; ++i)
      if (axes_[i].stride > axes_[widest].stride) widest = i;
    if (count_ == 0 || axes_[widest].stride <= span(widest)) return false;
    drop(widest);
    return true;
  }

  /// Axis i moves by d·stride, the others by multiples of their common divisor g: d is a multiple of g / gcd(g, stride).
  bool drop_alone() {
    for (int i = 0; i < count_; ++i) {
      std::int64_t common = 0;
      for (int j = 0; j < count_; ++j)
        if (j != i) common = std::gcd(common, axes_[j].stride);
      if (common / std::gcd(common, axes_[i].stride) <= axes_[i].most) continue;
      drop(i);
      return true;
    }
    return false;
  }

  void sort_by_length() {
    for (int i = 1; i < count_; ++i)
      for (int j = i; j > 0 && axes_[j].most < axes_[j - 1].most; --j) std::swap(axes_[j], axes_[j - 1]);
  }

  /// Steps along all axes but the last two, of either sign but for the first; d and -d are one collision.
  bool search(std::int64_t* d) const {
    int const n = count_;
    box_line const line(axes_[n - 2], axes_[n - 1]);
    std::int64_t const within = axes_[n - 2].stride * axes_[n - 2].most + axes_[n - 1].stride * axes_[n - 1].most;
    auto const rest = [&](std::int64_t moved) {
      d[n - 2] = d[n - 1] = 0;
      if (moved == 0 && n > 2 && d[0] != 0) return true;
      return checked::magnitude(moved) <= within && line.solve(-moved, d[n - 2], d[n - 1]);
    };
    if (n == 2) return rest(0);
    for (d[0] = 0; d[0] <= axes_[0].most; ++d[0]) {
      std::int64_t const moved = d[0] * axes_[0].stride;
      if (n == 3) {
        if (rest(moved)) return true;
        continue;
      }
      for (d[1] = -axes_[1].most; d[1] <= axes_[1].most; ++d[1])
        if (rest(moved + d[1] * axes_[1].stride)) return true;
    }
    return false;
  }

  overlap_axis axes_[4];
  int count_ = 0;
};

}  // namespace detail

/// Decides whether two elements of a tensor share memory. Strides are not 0 where an extent is above 1, and Σ (extent - 1)·|stride| is
/// below 2⁶² (validate_tensor.hpp sees to both).
template <class T>
overlap_answer find_overlap(view<T> const& tensor) {
  return detail::overlap_search(tensor).run();
}

}  // namespace palimpsa
