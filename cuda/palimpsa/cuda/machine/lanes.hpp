#pragma once
/// @file
/// Lanes for a group of GPU threads that share a row, and their twin on the host: the same cells, the same order of additions, one
/// thread that plays all lanes. Tests run the twin; the kernels run the warp.

#include "palimpsa/cuda/machine/row_set.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/recurrence.hpp"

namespace palimpsa::cuda {

/// 1/x to one unit in the last place: rcp.approx on the device (its range: |x| in [2⁻¹²⁶, 2¹²⁶], zero or infinity outside),
/// division on the host.
PALIMPSA_HD PALIMPSA_INLINE float approximate_reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1 / x;
#endif
}

/// Row by row.
template <int N>
PALIMPSA_HD PALIMPSA_INLINE row_set<float, N> approximate_reciprocal(row_set<float, N> x) {
  for (int i = 0; i < N; ++i) x.row[i] = approximate_reciprocal(x.row[i]);
  return x;
}

namespace detail {

/// Applies f to every float of a value that a sum may carry.
template <class F>
PALIMPSA_HD PALIMPSA_INLINE float map(float x, F f) {
  return f(x);
}
template <int N, class F>
PALIMPSA_HD PALIMPSA_INLINE row_set<float, N> map(row_set<float, N> x, F f) {
  for (int i = 0; i < N; ++i) x.row[i] = f(x.row[i]);
  return x;
}
template <class T, class F>
PALIMPSA_HD PALIMPSA_INLINE answer<T, false> map(answer<T, false> x, F f) {
  return {map(x.mean, f)};
}
template <class T, class F>
PALIMPSA_HD PALIMPSA_INLINE answer<T, true> map(answer<T, true> x, F f) {
  return {map(x.mean, f), map(x.variance, f)};
}
template <class T, class F>
PALIMPSA_HD PALIMPSA_INLINE palimpsa::detail::two_sums<T> map(palimpsa::detail::two_sums<T> x, F f) {
  return {map(x.first, f), map(x.second, f)};
}
template <class R, class F>
PALIMPSA_HD PALIMPSA_INLINE palimpsa::detail::apart<R> map(palimpsa::detail::apart<R> x, F f) {
  return {map(x.most, f), map(x.rest, f)};
}
template <class R, class T, class F>
PALIMPSA_HD PALIMPSA_INLINE palimpsa::detail::apart_shares<R, T> map(palimpsa::detail::apart_shares<R, T> x, F f) {
  return {map(x.square, f), map(x.lead, f), map(x.others, f)};
}

/// One lane's share of a sum: even and odd cells apart, so that two additions are in flight.
template <class T, int Cells, class F>
PALIMPSA_HD PALIMPSA_INLINE T lane_share(F f, int first) {
  T even{}, odd{};
  PALIMPSA_UNROLLED
  for (int i = 0; i < Cells; i += 2) {
    even = f(first + i, even);
    odd = f(first + i + 1, odd);
  }
  return even + odd;
}

}  // namespace detail

#if defined(__CUDACC__)
/// This thread's cells of a row whose other cells are in the neighbouring lanes of its warp.
template <class Tile>
struct warp_lanes {
  /// Σ over the cells of all lanes; the sum reaches every lane.
  template <class T, class F>
  __device__ __forceinline__ T sum(F f) const {
    T s = detail::lane_share<T, Tile::keys_per_lane>(f, 0);
    PALIMPSA_UNROLLED
    for (int step = 1; step < Tile::lanes; step *= 2)
      s = s + detail::map(s, [=](float x) { return __shfl_xor_sync(0xffffffffu, x, step, 32); });
    return s;
  }
  /// f(i) for this lane's cells.
  template <class F>
  __device__ __forceinline__ void each(F f) const {
    PALIMPSA_UNROLLED
    for (int i = 0; i < Tile::keys_per_lane; ++i) f(i);
  }
  /// 1/x to one unit in the last place.
  template <class T>
  __device__ __forceinline__ T reciprocal(T x) const {
    return approximate_reciprocal(x);
  }
};
#endif

/// The host twin: cells of lane l are [l·keys_per_lane, (l+1)·keys_per_lane), and sums meet in the order of the butterfly.
template <class Tile>
struct twin_lanes {
  /// As warp_lanes::sum.
  template <class T, class F>
  T sum(F f) const {
    T share[Tile::lanes];
    for (int lane = 0; lane < Tile::lanes; ++lane)
      share[lane] = detail::lane_share<T, Tile::keys_per_lane>(f, lane * Tile::keys_per_lane);
    for (int step = 1; step < Tile::lanes; step *= 2) {
      T next[Tile::lanes];
      for (int lane = 0; lane < Tile::lanes; ++lane) next[lane] = share[lane] + share[lane ^ step];
      for (int lane = 0; lane < Tile::lanes; ++lane) share[lane] = next[lane];
    }
    return share[0];
  }
  /// f for every cell.
  template <class F>
  void each(F f) const {
    for (int i = 0; i < Tile::keys; ++i) f(i);
  }
  /// 1/x.
  template <class T>
  T reciprocal(T x) const {
    return approximate_reciprocal(x);
  }
};

}  // namespace palimpsa::cuda
