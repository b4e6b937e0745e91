#pragma once
/// @file
/// What a kernel is handed: the caller's views, unread. Everything in it that lies in device memory is taken with suspicion:
/// a bad segment or slot is inert and flagged, whatever the values are. Host and device.

#include <cfloat>
#include <cstdint>

#include "palimpsa/cuda/entry/status.hpp"
#include "palimpsa/plane.hpp"
#include "palimpsa/shape.hpp"
#include "palimpsa/view.hpp"

#if defined(__CUDACC__)
#include "palimpsa/cuda/execution.cuh"
#endif

namespace palimpsa::cuda {

/// A scan or a step over rows: `step` differs from `scan` in where states lie (slots of a pool) and nothing else.
template <class Storage>
struct row_problem {
  scan_shape shape;                      ///< sizes
  view<Storage const> q;                 ///< queries
  view<Storage const> k;                 ///< keys
  view<Storage const> v;                 ///< values
  view<float const> solved;              ///< x = Λ⁻¹q [B,T,HV,K] of a full memory, in place of q
  view<float const> beta;                ///< absent = 1
  view<float const> log_decay;           ///< absent = 0
  view<float const> prior;               ///< where a precision is kept
  view<float const> eta_in;              ///< state or pool to read
  view<float const> evidence_in;         ///< state or pool to read
  view<float> eta_out;                   ///< state or pool to write
  view<float> evidence_out;              ///< state or pool to write
  index_view cu_seqlens;                 ///< scan: packed sequences
  index_view slot_in;                    ///< step: where a state is read
  index_view slot_out;                   ///< step: where it is written
  bool pooled = false;                   ///< step: sequence n's states lie in slots
  view<Storage> out;                     ///< scale · read
  view<float> out_variance;              ///< scale² · variance; absent = not asked for
  float scale = 1;                       ///< multiplies the read
  unsigned* status = nullptr;            ///< optional
};

/// The same plane, known to lie in device memory: loads and stores then skip the generic window.
template <class T>
PALIMPSA_HD PALIMPSA_INLINE plane<T> on_device(plane<T> tensor) {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isGlobal(tensor.data));
#endif
  return tensor;
}

/// Marks what device memory turned out to hold.
PALIMPSA_HD inline void flag(unsigned* status, unsigned bit) {
  if (status == nullptr) return;
#if defined(__CUDA_ARCH__)
  atomicOr(status, bit);
#else
  *status |= bit;
#endif
}

/// Whether a number may be a prior: above 0, normal, finite.
PALIMPSA_HD inline bool is_prior(float x) { return x >= FLT_MIN && x <= FLT_MAX; }

/// Where sequence n lies and where its states are.
struct sequence_place {
  segment tokens;             ///< its tokens; empty if the boundaries are bad
  std::int64_t read = -1;     ///< state or slot to start from; -1 = zeros, or an inert row of a step
  bool inert = false;         ///< step: output zero, nothing else
};

/// Reads boundaries or slots of sequence n, trusting nothing. `first_block` says whether this caller reports for the whole sequence.
template <class Storage>
PALIMPSA_HD sequence_place place_of(row_problem<Storage> const& p, std::int64_t n, bool reports) {
  sequence_place place;
  place.read = n;
  if (p.pooled) {
    place.tokens = {n, 0, p.shape.tokens};
    if (!p.slot_in.present()) return place;
    place.read = p.slot_in(n);
    if (place.read < -1 || place.read >= p.eta_in.extent[0]) {
      if (reports) flag(p.status, bad_slot);
      place.read = -1;
    }
    place.inert = place.read < 0;
    return place;
  }
  place.tokens = {n, 0, p.shape.tokens};
  if (!p.cu_seqlens.present()) return place;
  std::int64_t const first = p.cu_seqlens(n), end = p.cu_seqlens(n + 1);
  bool const good = 0 <= first && first <= end && end <= p.shape.tokens;
  bool const whole = (n > 0 || first == 0) && (n + 1 < p.shape.sequences || end == p.shape.tokens);
  if (reports && !(good && whole)) flag(p.status, bad_segment);
  place.tokens = good ? segment{0, first, end - first} : segment{0, 0, 0};
  return place;
}

/// Where the state of sequence n goes after token t (t = -1: before any); -1 = nowhere.
template <class Storage>
PALIMPSA_HD std::int64_t written_state(row_problem<Storage> const& p, sequence_place const& place, std::int64_t n,
                                       std::int64_t t, bool reports) {
  bool const last = t + 1 == place.tokens.length;
  if (!p.pooled) return last ? n : -1;
  if (t < 0) return -1;
  std::int64_t slot = place.read;
  if (p.slot_out.present()) {
    if (p.slot_out.rank == 1 && !last) return -1;
    slot = p.slot_out.rank == 1 ? p.slot_out(n) : p.slot_out(n, t);
  } else if (!last) {
    return -1;
  }
  if (slot < -1 || slot >= p.eta_out.extent[0]) {
    if (reports) flag(p.status, bad_slot);
    return -1;
  }
  return slot;
}

}  // namespace palimpsa::cuda
