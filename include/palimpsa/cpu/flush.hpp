#pragma once
/// @file
/// Numbers too small to matter, for the time of a head. A memory that fades under a gate, and the products of gates of a chunk, pass
/// below 2⁻¹²⁶ on their way to zero, where some cores take 10 to 100 times as long for an operation (a chunked Gated DeltaNet at
/// log_decay -3 took 13 times its time at -0.05 on a Sapphire Rapids core), and a state that stays there is slow for good. So they are
/// zero: a head runs with the unit's flush mode on and leaves the mode as it was.
///
/// Where a prior is beyond 2^±90 such numbers may matter (J beside a prior of 1e-36, 1/R beside evidence of 1e38), and the mode stays off.
/// The prior is all that decides, so that a step, a scan and a sequence cut in two run alike.

#include "palimpsa/cpu/head.hpp"
#include "palimpsa/detail/config.hpp"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Whether numbers below the smallest normal one matter nowhere in a head.
template <class Rule, class Storage, class Scalar>
bool small_is_zero(head_inputs<Storage, Scalar> const& in) {
  if constexpr (Rule::keeps_precision) {
    for (std::int64_t j = 0; j < (Rule::keeps_full ? in.keys : 1); ++j)
      if (!(in.prior(0, j) >= Scalar(0x1p-90) && in.prior(0, j) <= Scalar(0x1p90))) return false;
  }
  return true;
}

/// While it lives, this thread takes and gives zero for numbers below the smallest normal one, if it is told to.
class flush_small {
 public:
  /// Turns the mode on.
  explicit flush_small(bool on) : on_(on) {
    if (!on_) return;
#if defined(__SSE2__)
    before_ = _mm_getcsr();
    _mm_setcsr(before_ | 0x8040u);  // flush to zero, denormals are zero
#elif defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(before_ | (1ull << 24)));
#endif
  }
  /// Leaves it as it was, but for exceptions that were raised.
  ~flush_small() {
    if (!on_) return;
#if defined(__SSE2__)
    _mm_setcsr((_mm_getcsr() & 0x3fu) | before_);
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" ::"r"(before_));
#endif
  }
  flush_small(flush_small const&) = delete;
  flush_small& operator=(flush_small const&) = delete;

 private:
  bool on_;
#if defined(__SSE2__)
  unsigned before_ = 0;
#elif defined(__aarch64__)
  unsigned long long before_ = 0;
#endif
};

}  // namespace palimpsa::cpu
