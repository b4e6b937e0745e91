#pragma once
/// @file
/// What a block of threads does with a tile of tokens, phase by phase: bring it from the caller's memory, widen it to float, let every
/// row observe it, flush the reads. Every phase is host-device and takes the thread's number, so that a test without a GPU runs the
/// very code (row_twin.hpp) that the kernel runs (row_kernel.cuh).

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "palimpsa/cuda/machine/lanes.hpp"
#include "palimpsa/cuda/entry/problem.hpp"
#include "palimpsa/cuda/machine/state_cells.hpp"
#include "palimpsa/cuda/entry/task.hpp"
#include "palimpsa/recurrence.hpp"
#include "palimpsa/storage.hpp"

namespace palimpsa::cuda {

/// Tokens of the tile that starts at `first`, of a sequence of `tokens`; 0 past its end.
template <class Tile>
PALIMPSA_HD int tile_count(std::int64_t tokens, std::int64_t first) {
  std::int64_t const left = tokens - first;
  return left < 0 ? 0 : left < Tile::tokens ? static_cast<int>(left) : Tile::tokens;
}

/// Gates a token has in a tile.
template <class Rule, class Tile>
inline constexpr int tile_gates = Rule::forget_type::scope == gate_scope::key ? Tile::keys : 1;

/// A tile of tokens as the caller stores it, on its way in.
template <class Rule, class Tile, class Storage>
struct arriving_tokens {
  /// Queries, or x = Λ⁻¹q from the head stage.
  using query_type = std::conditional_t<Rule::keeps_full, float, Storage>;
  /// @{
  /// Token by token.
  alignas(16) Storage key[Tile::tokens][Tile::keys];
  alignas(16) query_type query[Tile::tokens][Tile::keys];
  alignas(16) Storage value[Tile::tokens][Tile::block_rows];
  alignas(16) float beta[Tile::tokens][Tile::block_rows];
  alignas(16) float log_decay[Tile::tokens][tile_gates<Rule, Tile>];
  /// @}
};

/// A tile of tokens as rows observe it, and what they read. Padded keys and rows are zero, which every rule carries along harmlessly.
template <class Rule, class Tile>
struct staged_tokens {
  /// @{
  /// Token by token.
  alignas(16) float key[Tile::tokens][Tile::keys];
  alignas(16) float query[Tile::tokens][Tile::keys];
  alignas(16) float alpha[Tile::tokens][tile_gates<Rule, Tile>];
  alignas(16) float value[Tile::tokens][Tile::block_rows];
  alignas(16) float beta[Tile::tokens][Tile::block_rows];
  float mean[Tile::tokens][Tile::block_rows];
  float variance[Tile::tokens][Tile::block_rows];
  /// @}
};

/// One tensor of a sequence's head, and how it may be copied.
template <class T>
struct source {
  plane<T const> from;  ///< the tensor; absent = nothing to copy
  int columns = 0;      ///< that exist
  bool wide = false;    ///< 16 bytes at a time

  source() = default;
  /// Wide where address, step and width allow it.
  PALIMPSA_HD source(plane<T const> tensor, std::int64_t existing) : from(tensor), columns(static_cast<int>(existing)) {
    constexpr int chunk = 16 / static_cast<int>(sizeof(T));
    wide = tensor.column == 1 && tensor.row % chunk == 0 && columns % chunk == 0 &&
           reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
  }
};

/// Where a block's tokens come from; the same for all its threads, so it lies in shared memory.
template <class Rule, class Storage>
struct sources {
  /// @{
  /// One a tensor.
  source<Storage> key, query, value;
  source<float> solved, beta, log_decay;
  /// @}
};

/// The sources of a task.
template <class Rule, class Storage>
PALIMPSA_HD sources<Rule, Storage> sources_of(row_problem<Storage> const& p, block_task const& b, segment const& s) {
  sources<Rule, Storage> from;
  from.key = {tokens_of(p.k, s, b.key_head), p.shape.keys};
  if constexpr (Rule::keeps_full)
    from.solved = {tokens_of(p.solved, s, b.head), p.shape.keys};
  else
    from.query = {tokens_of(p.q, s, b.key_head), p.shape.keys};
  auto const rows_from = [&](auto tensor) {
    if (tensor.present()) tensor.data += b.first_row * tensor.column;
    return tensor;
  };
  from.value = {rows_from(tokens_of(p.v, s, b.head)), b.rows};
  from.beta = {rows_from(tokens_of(p.beta, s, b.head)), b.rows};
  from.log_decay = {gates_of<typename Rule::forget_type>(p.log_decay, s, b.head),
                    Rule::forget_type::scope == gate_scope::key ? p.shape.keys : 1};
  return from;
}

/// Evidence that a thread has loaded, flagged where it is below 0. A minimum a cell: what lies beside it is the state's way through
/// memory.
template <class Rule, class Tile, class Rows>
PALIMPSA_HD PALIMPSA_INLINE void flag_evidence(Rows const* evidence, unsigned* status) {
  if constexpr (Rule::keeps_diagonal) {
    float least = 0;
    PALIMPSA_UNROLLED
    for (int i = 0; i < Tile::keys_per_lane; ++i) {
      PALIMPSA_UNROLLED
      for (int r = 0; r < Tile::rows; ++r) least = fminf(least, evidence[i].row[r]);
    }
    if (least < 0) flag(status, negative_evidence);
  }
}

/// The head's prior; flagged where it is none.
template <class Rule, class Storage>
PALIMPSA_HD float prior_for(row_problem<Storage> const& p, block_task const& b) {
  if constexpr (Rule::keeps_diagonal) {
    float const prior = *p.prior.at(b.head);
    if (b.reports && !is_prior(prior)) flag(p.status, bad_prior);
    return prior;
  } else {
    return 0;
  }
}

/// What all threads of a block share about a task of a scan.
template <class Rule, class Storage>
struct block_plan {
  block_task task;              ///< head and rows
  sequence_place place;         ///< where the sequence lies
  sources<Rule, Storage> from;  ///< its tensors
  float prior;                  ///< of the head
};

namespace detail {

/// Tokens halved until what a block stages fits the 48 KB that every GPU gives without asking.
template <class Rule, class Tile, class Storage>
constexpr int fitting_tokens() {
  constexpr std::size_t bytes =
      sizeof(arriving_tokens<Rule, Tile, Storage>) + sizeof(staged_tokens<Rule, Tile>) + sizeof(block_plan<Rule, Storage>);
  if constexpr (bytes <= 48 * 1024)
    return Tile::tokens;
  else
    return fitting_tokens<Rule, typename Tile::template with_tokens<Tile::tokens / 2>, Storage>();
}

}  // namespace detail

/// The scan's tile for a rule and a storage: K's tile, with as many tokens staged as fit.
template <class Rule, class Tile, class Storage>
using fitting_tile = typename Tile::template with_tokens<detail::fitting_tokens<Rule, Tile, Storage>()>;

/// Works out a task; one thread does it for its block.
template <class Rule, class Storage>
PALIMPSA_HD block_plan<Rule, Storage> plan_of(row_problem<Storage> const& p, block_task const& task) {
  block_plan<Rule, Storage> plan;
  plan.task = task;
  plan.place = place_of(p, plan.task.sequence, plan.task.reports && plan.task.head == 0);
  plan.from = sources_of<Rule>(p, plan.task, plan.place.tokens);
  plan.prior = prior_for<Rule>(p, plan.task);
  return plan;
}

namespace detail {

/// Copies Bytes to shared memory without waiting for them (see arrived()). On the host: a copy.
template <int Bytes>
PALIMPSA_HD PALIMPSA_INLINE void copy_async(void* to, void const* from) {
#if defined(__CUDA_ARCH__)
  auto const address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
#else
  for (int i = 0; i < Bytes; ++i) static_cast<unsigned char*>(to)[i] = static_cast<unsigned char const*>(from)[i];
#endif
}

/// Waits until everything this thread has sent for is there.
PALIMPSA_HD PALIMPSA_INLINE void arrived() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/// Rows [first, first + count) of a source; `threads` callers share the work. 16 bytes at a time, or 4, or element by element.
template <class T, int Columns>
PALIMPSA_HD void bring(source<T> const& s, std::int64_t first, int count, int thread, int threads, T (*into)[Columns]) {
  if (!s.from.present()) return;
  constexpr int chunk = 16 / static_cast<int>(sizeof(T));
  T const* const base = s.from.data + first * s.from.row;
  if constexpr (Columns % chunk == 0) {
    if (s.wide) {
      PALIMPSA_ROLLED
      for (int e = thread; e < count * (Columns / chunk); e += threads) {
        int const t = e / (Columns / chunk), j = e % (Columns / chunk) * chunk;
        if (j < s.columns) copy_async<16>(&into[t][j], base + t * s.from.row + j);
      }
      return;
    }
  }
  PALIMPSA_ROLLED
  for (int e = thread; e < count * Columns; e += threads) {
    int const t = e / Columns, j = e % Columns;
    if (j >= s.columns) continue;
    T const* const at = base + t * s.from.row + j * s.from.column;
    if constexpr (sizeof(T) == 4)
      copy_async<4>(&into[t][j], at);
    else
      into[t][j] = *at;
  }
}

/// Four elements that are widened together.
template <class T>
struct alignas(4 * sizeof(T)) four {
  T x[4];
};

/// Widens `count` rows of an arrived tensor. Returns the least of what this thread widened, or 0.
template <class T, int Columns>
PALIMPSA_HD float widen(T const (*from)[Columns], int count, int thread, int threads, float (*into)[Columns]) {
  float least = 0;
  PALIMPSA_ROLLED
  for (int e = thread; e < count * (Columns / 4); e += threads) {
    int const t = e / (Columns / 4), j = e % (Columns / 4) * 4;
    four<T> const in = *reinterpret_cast<four<T> const*>(&from[t][j]);
    quad out;
    for (int c = 0; c < 4; ++c) {
      out.x[c] = storage<T>::load(in.x[c]);
      least = fminf(least, out.x[c]);
    }
    *reinterpret_cast<quad*>(&into[t][j]) = out;
  }
  return least;
}

/// One lane's cells of a staged token.
template <class Tile>
PALIMPSA_HD PALIMPSA_INLINE void fetch(float const* staged, int lane, float* into) {
  PALIMPSA_UNROLLED
  for (int i = 0; i < Tile::keys_per_lane; i += 4) {
    quad const q = *reinterpret_cast<quad const*>(staged + Tile::key_of(lane, i));
    for (int c = 0; c < 4; ++c) into[i + c] = q.x[c];
  }
}

}  // namespace detail

/// Before a task's first tile: everything that will not arrive is zero (padding, an absent gate) or one (an absent β).
template <class Rule, class Tile, class Storage>
PALIMPSA_HD void clear_arrivals(block_task const& b, bool has_beta, int thread, int threads,
                                arriving_tokens<Rule, Tile, Storage>& a) {
  using query_type = typename arriving_tokens<Rule, Tile, Storage>::query_type;
  constexpr int keys = Tile::keys, rows = Tile::block_rows, gates = tile_gates<Rule, Tile>;
  PALIMPSA_ROLLED
  for (int e = thread; e < Tile::tokens * keys; e += threads) {
    a.key[e / keys][e % keys] = storage<Storage>::store(0);
    a.query[e / keys][e % keys] = storage<query_type>::store(0);
  }
  PALIMPSA_ROLLED
  for (int e = thread; e < Tile::tokens * rows; e += threads) {
    a.value[e / rows][e % rows] = storage<Storage>::store(0);
    a.beta[e / rows][e % rows] = has_beta || e % rows >= b.rows ? 0.0f : 1.0f;
  }
  PALIMPSA_ROLLED
  for (int e = thread; e < Tile::tokens * gates; e += threads) a.log_decay[e / gates][e % gates] = 0;
}

/// Sends for tokens [first, first + count).
template <class Rule, class Tile, class Storage>
PALIMPSA_HD void bring(sources<Rule, Storage> const& s, std::int64_t first, int count, int thread, int threads,
                       arriving_tokens<Rule, Tile, Storage>& into) {
  detail::bring(s.key, first, count, thread, threads, into.key);
  if constexpr (Rule::keeps_full)
    detail::bring(s.solved, first, count, thread, threads, into.query);
  else
    detail::bring(s.query, first, count, thread, threads, into.query);
  detail::bring(s.value, first, count, thread, threads, into.value);
  detail::bring(s.beta, first, count, thread, threads, into.beta);
  detail::bring(s.log_decay, first, count, thread, threads, into.log_decay);
}

/// Turns `count` tokens that have arrived into what rows observe. A gate above 0 is flagged, and a β below.
template <class Rule, class Tile, class Storage>
PALIMPSA_HD void widen(arriving_tokens<Rule, Tile, Storage> const& from, int count, unsigned* status, int thread, int threads,
                       staged_tokens<Rule, Tile>& into) {
  detail::widen(from.key, count, thread, threads, into.key);
  detail::widen(from.query, count, thread, threads, into.query);
  detail::widen(from.value, count, thread, threads, into.value);
  float const least = detail::widen(from.beta, count, thread, threads, into.beta);
  if (least < 0) flag(status, negative_beta);
  constexpr int gates = tile_gates<Rule, Tile>;
  PALIMPSA_ROLLED
  for (int e = thread; e < count * gates; e += threads) {
    float const log_decay = from.log_decay[e / gates][e % gates];
    if (log_decay > 0) flag(status, positive_gate);
    into.alpha[e / gates][e % gates] = Rule::forget_type::retain(log_decay);
  }
}

/// One staged token for a group's rows: the recurrence itself. `cells` keys, queries (and gates) have been fetched.
template <class Rule, bool Variance, class Tile, class Lanes, class Rows>
PALIMPSA_HD PALIMPSA_INLINE answer<Rows, Variance> observe_token(Lanes lanes, staged_tokens<Rule, Tile> const& s, int t,
                                                                 token<float> x, int group, float prior, Rows* eta,
                                                                 Rows* evidence) {
  Rows v, beta;
  PALIMPSA_UNROLLED
  for (int r = 0; r < Tile::rows; ++r) {
    v.row[r] = s.value[t][Tile::row_of(group, r)];
    beta.row[r] = s.beta[t][Tile::row_of(group, r)];
  }
  return observe<Rule, Variance>(lanes, eta, evidence, x, v, beta, prior);
}

/// The reads of a tile to the caller's memory.
template <class Rule, bool Variance, class Tile, class Storage>
PALIMPSA_HD void flush(row_problem<Storage> const& p, block_task const& b, segment const& s, std::int64_t first, int count,
                       int thread, int threads, staged_tokens<Rule, Tile> const& from) {
  plane<Storage> const out = tokens_of(p.out, s, b.head);
  plane<float> const variance = tokens_of(p.out_variance, s, b.head);
  PALIMPSA_ROLLED
  for (int e = thread; e < count * Tile::block_rows; e += threads) {
    int const t = e / Tile::block_rows, i = e % Tile::block_rows;
    if (i >= b.rows) continue;
    out(first + t, b.first_row + i) = storage<Storage>::store(from.mean[t][i] * p.scale);
    if constexpr (Variance) variance(first + t, b.first_row + i) = from.variance[t][i] * p.scale * p.scale;
  }
}

/// Zeros for the outputs of an inert row.
template <class Storage>
PALIMPSA_HD void clear(row_problem<Storage> const& p, block_task const& b, segment const& s, int thread, int threads) {
  plane<Storage> const out = tokens_of(p.out, s, b.head);
  plane<float> const variance = tokens_of(p.out_variance, s, b.head);
  for (std::int64_t t = 0; t < s.length; ++t)
    for (int i = thread; i < b.rows; i += threads) {
      out(t, b.first_row + i) = storage<Storage>::store(0.0f);
      if (variance.present()) variance(t, b.first_row + i) = 0.0f;
    }
}

}  // namespace palimpsa::cuda
