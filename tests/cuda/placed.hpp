#pragma once
// Tensors in blocks of memory, in every arrangement a kernel meets: from the one that allows 16-byte accesses to none that does.
// What lies between and around the elements is a NaN: reading it shows in results, writing it shows in gaps_untouched().

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <ostream>
#include <type_traits>
#include <vector>

#include "palimpsa/storage.hpp"
#include "palimpsa/view.hpp"
#include "support/problem.hpp"

namespace palimpsa_test {

/// How a tensor lies in its block.
enum class layout {
  aligned,        ///< contiguous from a multiple of 256 bytes: everything may move 16 bytes at a time
  wide_pitch,     ///< a slice of a wider, aligned buffer: rows step by a multiple of 16 elements
  interleaved,    ///< every other element of an aligned buffer: all but the step along the last axis would allow 16 bytes at a time
  odd_pointer,    ///< contiguous, one element late
  odd_pitch,      ///< every axis steps further than it needs, by odd numbers
  outer_swapped,  ///< the second and third axes change places: [B,H,T,C] under a [B,T,H,C] view
  transposed,     ///< the last two axes change places: a state kept K×V
  reversed,       ///< every stride negative
};
inline constexpr layout every_layout[] = {layout::aligned,   layout::wide_pitch,    layout::interleaved, layout::odd_pointer,
                                          layout::odd_pitch, layout::outer_swapped, layout::transposed,  layout::reversed};

inline std::ostream& operator<<(std::ostream& out, layout a) {
  char const* const names[] = {"aligned",   "wide pitch",         "interleaved",       "odd pointer",
                               "odd pitch", "outer axes swapped", "last axes swapped", "reversed"};
  return out << names[static_cast<int>(a)];
}

using sizes = std::vector<std::int64_t>;

/// Where the elements of a tensor lie, in elements from the start of its block.
struct geometry {
  sizes extent, stride;
  std::int64_t offset = 0;  ///< of element (0, 0, ...)
  std::int64_t count = 0;   ///< elements of the block

  geometry() = default;
  geometry(sizes const& e, layout how) : extent(e), stride(e.size()) {
    constexpr std::int64_t guard = 64;  // elements before and after; a multiple of every vector
    std::vector<std::size_t> order(e.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (how == layout::outer_swapped && e.size() >= 3) std::swap(order[1], order[2]);
    if (how == layout::transposed && e.size() >= 2) std::swap(order[e.size() - 1], order[e.size() - 2]);
    offset = guard + (how == layout::odd_pointer ? 1 : 0);
    std::int64_t step = how == layout::interleaved ? 2 : 1;
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      stride[*axis] = how == layout::reversed ? -step : step;
      if (how == layout::reversed && e[*axis] > 0) offset += (e[*axis] - 1) * step;
      step *= e[*axis];
      if (how == layout::odd_pitch) step += 3 + step % 2;
      if (how == layout::wide_pitch) step = (step + 31) / 16 * 16;
    }
    count = step + 2 * guard + 1;
  }

  std::int64_t elements() const {
    return std::accumulate(extent.begin(), extent.end(), std::int64_t{1}, [](std::int64_t a, std::int64_t b) { return a * b; });
  }

  /// f(place in the block) for every element, row-major.
  template <class F>
  void each(F f) const {
    std::int64_t size[4] = {1, 1, 1, 1}, step[4] = {};
    for (std::size_t axis = 0; axis < extent.size(); ++axis) size[axis] = extent[axis], step[axis] = stride[axis];
    for (std::int64_t a = 0; !extent.empty() && a < size[0]; ++a)
      for (std::int64_t b = 0; b < size[1]; ++b)
        for (std::int64_t c = 0; c < size[2]; ++c)
          for (std::int64_t d = 0; d < size[3]; ++d)
            f(static_cast<std::size_t>(offset + a * step[0] + b * step[1] + c * step[2] + d * step[3]));
  }

  /// The view of a tensor whose block starts at `base`.
  template <class T>
  palimpsa::view<T> view(T* base) const {
    palimpsa::view<T> v;
    v.rank = static_cast<int>(extent.size());
    v.data = v.rank == 0 ? nullptr : base + offset;
    for (std::size_t axis = 0; axis < extent.size(); ++axis) v.extent[axis] = extent[axis], v.stride[axis] = stride[axis];
    return v;
  }
};

/// A number as T, rounded to nearest.
template <class T>
T number_as(double x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(x);
  else
    return palimpsa::storage<T>::store(static_cast<typename palimpsa::storage<T>::scalar>(x));
}
template <class T>
double as_number(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<double>(x);
  else
    return static_cast<double>(palimpsa::storage<T>::load(x));
}

/// A tensor in host memory. Default: absent.
template <class T>
class placed {
 public:
  placed() = default;
  placed(placed&&) = default;
  placed& operator=(placed&&) = default;

  /// All elements NaN (integers: the most negative one).
  placed(sizes const& e, layout how) : place_(e, how), memory_(static_cast<std::size_t>(place_.count) + slack) { poison(); }
  /// Holding dense row-major values.
  placed(sizes const& e, layout how, numbers const& values) : placed(e, how) { fill(values); }

  geometry const& place() const { return place_; }
  palimpsa::view<T> view() const { return place_.view(base()); }
  operator palimpsa::view<T>() const { return view(); }
  operator palimpsa::view<T const>() const { return view(); }

  /// The block, from a multiple of 256 bytes.
  T* base() const {
    auto const misplaced = reinterpret_cast<std::uintptr_t>(memory_.data()) % 256;
    return const_cast<T*>(memory_.data()) + (256 - misplaced) % 256 / sizeof(T);
  }

  void fill(numbers const& values) {
    std::size_t i = 0;
    place_.each([&](std::size_t at) { base()[at] = number_as<T>(values.at(i++)); });
  }

  /// NaN everywhere, in elements and gaps.
  void poison() {
    for (T& x : memory_) x = unwritten();
  }

  /// The elements, dense and row-major.
  numbers values() const {
    numbers dense;
    place_.each([&](std::size_t at) { dense.push_back(as_number(base()[at])); });
    return dense;
  }

  /// The bits of the elements: two results are the same when these are equal.
  std::vector<unsigned char> bits() const {
    std::vector<unsigned char> all;
    place_.each([&](std::size_t at) {
      unsigned char bytes[sizeof(T)];
      std::memcpy(bytes, base() + at, sizeof(T));
      all.insert(all.end(), bytes, bytes + sizeof(T));
    });
    return all;
  }

  /// Whether no element has been written since poison().
  bool still_poisoned() const {
    bool all = true;
    place_.each([&](std::size_t at) { all = all && untouched(base()[at]); });
    return all;
  }

  /// Whether what is no element has not been written.
  bool gaps_untouched() const {
    std::vector<bool> element(static_cast<std::size_t>(place_.count));
    place_.each([&](std::size_t at) { element[at] = true; });
    for (std::size_t i = 0; i < element.size(); ++i)
      if (!element[i] && !untouched(base()[i])) return false;
    return true;
  }

 private:
  static constexpr std::size_t slack = 256 / sizeof(T);

  static T unwritten() {
    if constexpr (std::is_integral_v<T>)
      return (std::numeric_limits<T>::min)();
    else
      return number_as<T>(std::numeric_limits<double>::quiet_NaN());
  }
  static bool untouched(T const& x) {
    T const nothing = unwritten();
    return std::memcmp(&x, &nothing, sizeof(T)) == 0;
  }

  geometry place_;
  std::vector<T> memory_;
};

}  // namespace palimpsa_test
