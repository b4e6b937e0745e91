#pragma once
// Tensors in memory, in every arrangement a caller may bring. What lies between the elements is a NaN: reading it shows
// in the results, writing it shows in `gaps_untouched`.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <ostream>
#include <vector>

#include "palimpsa/storage.hpp"
#include "palimpsa/view.hpp"
#include "support/problem.hpp"

namespace palimpsa_test {

/// How a tensor lies in memory.
enum class arrangement {
  contiguous,
  padded,         ///< starts one element late; every axis steps further than it needs, by odd numbers
  outer_swapped,  ///< the second and third axes change places: [B,H,T,C] under a [B,T,H,C] view
  transposed,     ///< the last two axes change places: a state kept K×V
  reversed,       ///< every stride negative
};
inline constexpr arrangement every_arrangement[] = {arrangement::contiguous, arrangement::padded,
                                                    arrangement::outer_swapped, arrangement::transposed,
                                                    arrangement::reversed};

inline std::ostream& operator<<(std::ostream& out, arrangement a) {
  char const* const names[] = {"contiguous", "padded", "outer axes swapped", "last axes swapped", "reversed"};
  return out << names[static_cast<int>(a)];
}

using extents = std::vector<std::int64_t>;

inline std::int64_t product(extents const& e) {
  return std::accumulate(e.begin(), e.end(), std::int64_t{1}, [](std::int64_t a, std::int64_t b) { return a * b; });
}

/// A tensor with memory of its own. Default: absent.
template <class T> class tensor {
 public:
  tensor() = default;
  tensor(tensor&&) = default;
  tensor& operator=(tensor&&) = default;

  /// All elements NaN.
  tensor(extents const& e, arrangement how) : extents_(e) {
    int const rank = static_cast<int>(e.size());
    std::vector<int> order(e.size());  // axes, outermost first
    std::iota(order.begin(), order.end(), 0);
    if (how == arrangement::outer_swapped && rank >= 3) std::swap(order[1], order[2]);
    if (how == arrangement::transposed && rank >= 2) std::swap(order[e.size() - 1], order[e.size() - 2]);
    std::int64_t const pad = how == arrangement::padded ? 3 : 0;
    view_.rank = rank;
    std::int64_t step = how == arrangement::padded ? 2 : 1, start = how == arrangement::padded ? 1 : 0;
    if (rank > 1 && how == arrangement::padded) step = 1;
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      std::int64_t const size = e[static_cast<std::size_t>(*axis)];
      view_.extent[*axis] = size;
      view_.stride[*axis] = how == arrangement::reversed ? -step : step;
      if (how == arrangement::reversed && size > 0) start += (size - 1) * step;
      step = step * size + pad;
    }
    memory_.resize(static_cast<std::size_t>(step + start + 2 * guard));
    view_.data = memory_.data() + guard + start;
    poison();
  }

  /// Holding dense row-major values, rounded to T.
  tensor(extents const& e, arrangement how, numbers const& values) : tensor(e, how) {
    std::size_t i = 0;
    each([&](T& x) { x = from_double(values[i++]); });
  }

  palimpsa::view<T> view() const { return view_; }
  operator palimpsa::view<T>() const { return view_; }
  operator palimpsa::view<T const>() const { return view_; }

  /// NaN everywhere, in elements and gaps.
  void poison() {
    T const nan = from_double(std::numeric_limits<double>::quiet_NaN());
    for (T& x : memory_) x = nan;
  }

  /// The elements, dense and row-major.
  numbers values() const {
    numbers dense;
    dense.reserve(static_cast<std::size_t>(product(extents_)));
    each([&](T& x) { dense.push_back(static_cast<double>(palimpsa::storage<T>::load(x))); });
    return dense;
  }

  /// The bits of the elements, dense and row-major: two results are the same when these are equal.
  std::vector<unsigned char> bits() const {
    std::vector<unsigned char> all;
    each([&](T& x) {
      unsigned char bytes[sizeof(T)];
      std::memcpy(bytes, &x, sizeof x);
      all.insert(all.end(), bytes, bytes + sizeof x);
    });
    return all;
  }

  /// Whether every element is still a NaN, as poison() left it.
  bool still_poisoned() const {
    for (double x : values())
      if (!std::isnan(x)) return false;
    return true;
  }

  /// Whether what is not an element is still a NaN.
  bool gaps_untouched() const {
    std::vector<bool> element(memory_.size());
    each([&](T& x) { element[static_cast<std::size_t>(&x - memory_.data())] = true; });
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if (!element[i] && !std::isnan(static_cast<double>(palimpsa::storage<T>::load(memory_[i])))) return false;
    return true;
  }

  static T from_double(double x) {
    return palimpsa::storage<T>::store(static_cast<typename palimpsa::storage<T>::scalar>(x));
  }

 private:
  static constexpr std::int64_t guard = 17;  // elements before and after; odd, so that an aligned start is an accident

  template <class F> void each(F f) const {
    std::int64_t size[4] = {1, 1, 1, 1};
    for (int axis = 0; axis < view_.rank; ++axis) size[axis] = view_.extent[axis];
    for (std::int64_t a = 0; view_.rank > 0 && a < size[0]; ++a)
      for (std::int64_t b = 0; b < size[1]; ++b)
        for (std::int64_t c = 0; c < size[2]; ++c)
          for (std::int64_t d = 0; d < size[3]; ++d) f(view_(a, b, c, d));
  }

  extents extents_;
  std::vector<T> memory_;
  palimpsa::view<T> view_;
};

}  // namespace palimpsa_test
