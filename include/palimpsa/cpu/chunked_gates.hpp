#pragma once
/// @file
/// Gates of a chunk. Whatever the arithmetic, α = exp(log_decay) and its products are kept in double, and rounded once where they
/// meet a key, a query or a score: a gate of -3e-8 in float has lost half of what it takes, and a constant gate loses it again with
/// every token. Products, not sums of log_decay: numbers in [0, 1] keep their digits after any gate, -1000 and -inf included.
///
/// The decay D of a whole chunk meets the state again and again. It is kept beside D - 1, and what a slow chunk takes and what its
/// tokens write are summed before they meet the state, in one rounding (alone, the decay of a state that hardly moves would be rounded
/// the same way chunk after chunk):
///
///     H ← H + ((D - 1) H + Uᵀ(E ⊙ K))  for D ≥ 1/2,    H ← D H + Uᵀ(E ⊙ K)  below

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "palimpsa/cpu/chunked_products.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/policies/forget.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// A product of gates that is no normal number of the arithmetic is let go: nothing wades through denormals.
template <class Scalar>
PALIMPSA_INLINE double decayed(double share, double alpha) {
  double const product = share * alpha;
  return product < static_cast<double>((std::numeric_limits<Scalar>::min)()) ? 0 : product;
}

/// α of a gate, in double.
template <class Forget, class Scalar>
PALIMPSA_INLINE double wide_retain(Scalar log_decay) {
  return Forget::retain(static_cast<double>(log_decay));
}

/// α - 1. A policy that has it to the last bit says change(log_decay); it is taken if it belongs to this α (a policy may have inherited it
/// and retain otherwise). From another policy, and in float, the difference is close enough.
template <class Forget, class Scalar>
PALIMPSA_INLINE double wide_change(Scalar log_decay, double alpha) {
  if constexpr (std::is_same_v<Scalar, double> && requires(double x) { { Forget::change(x) } -> std::same_as<double>; }) {
    double const change = Forget::change(log_decay);
    if (std::fabs(change - (alpha - 1)) <= 2 * std::numeric_limits<double>::epsilon()) return change;
  }
  return alpha - 1;
}

/// y ← factor · x, over whole packs.
template <class Scalar>
void scale_row(Scalar* y, Scalar const* x, Scalar factor, std::int64_t columns) {
  constexpr std::int64_t width = native_pack<Scalar>::size;
  for (std::int64_t j = 0; j < columns; j += width) put_pack(pack_at(x + j) * factor, y + j);
}

/// y ← x ⊙ decay, over whole packs; the decay is one number, or one a key.
template <bool PerKey, class Scalar>
void decay_row(Scalar* y, Scalar const* x, Scalar const* decay, std::int64_t columns) {
  constexpr std::int64_t width = native_pack<Scalar>::size;
  if constexpr (PerKey)
    for (std::int64_t j = 0; j < columns; j += width) put_pack(pack_at(x + j) * pack_at(decay + j), y + j);
  else
    scale_row(y, x, decay[0], columns);
}

/// Whether a chunk that retains this much is slow: its state is kept and changed, in place of multiplied.
inline bool slow(double decay) { return decay >= 0.5; }

/// step ← (D - 1) x of a slow chunk, D x of another, over whole packs; change = D - 1.
template <class Scalar>
void open_step(Scalar* step, Scalar const* x, double decay, double change, std::int64_t columns) {
  scale_row(step, x, static_cast<Scalar>(slow(decay) ? change : decay), columns);
}

/// x ← x + step of a slow chunk, step of another.
template <class Scalar>
void close_step(Scalar* x, Scalar const* step, double decay, std::int64_t columns) {
  constexpr std::int64_t width = native_pack<Scalar>::size;
  if (slow(decay))
    for (std::int64_t j = 0; j < columns; j += width) put_pack(pack_at(x + j) + pack_at(step + j), x + j);
  else
    for (std::int64_t j = 0; j < columns; j += width) put_pack(pack_at(step + j), x + j);
}

}  // namespace palimpsa::cpu
