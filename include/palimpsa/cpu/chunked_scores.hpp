#pragma once
/// @file
/// The scores between the tokens of a chunk,
///
///     S_ts = Σ_j x_tj k_sj Π_{s<r≤t} α_rj   for s ≤ t,   x = q for a read, x = k for the system of a DeltaNet,
///
/// 16 rows at a time, so that scratch grows with the chunk and not with its square. Towards the tokens before the block the decay
/// falls into two products of α, Π_{s<r<r0} (kept with the keys, which decay from block to block) and Π_{r0≤r≤t} (multiplied into
/// x): one matrix product, for gates per head and per key alike. Inside the block it is a 16×16 table, or walked key by key.

#include <algorithm>
#include <cstdint>

#include "palimpsa/cpu/chunked_tokens.hpp"
#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Rows of scores that are worked out together.
inline constexpr std::int64_t block_rows = 16;

/// Scores of a chunk, block after block: open(), score() as often as needed, close().
template <class Rule, class Storage, class Scalar>
class chunk_scores {
 public:
  using tokens = chunk_tokens<Rule, Storage, Scalar>;  ///< the chunk
  static constexpr bool per_key = tokens::per_key;      ///< whether every key has a gate of its own

  /// Takes its scratch; counts only if the arena does.
  chunk_scores(arena& memory, std::int64_t most, std::int64_t keys)
      : past_(take_matrix<Scalar>(memory, most, keys)),
        decayed_(take_matrix<Scalar>(memory, block_rows, keys)),
        since_(take_matrix<Scalar>(memory, block_rows, per_key ? keys : 1)),
        between_(take_matrix<Scalar>(memory, block_rows, per_key ? 1 : block_rows)),
        run_(memory.take<Scalar>(past_.stride)) {
    if constexpr (!per_key) since_.stride = 1;
  }

  /// Tokens [first, first + rows) are next.
  void open(tokens const& chunk, std::int64_t first, std::int64_t rows) {
    first_ = first;
    rows_ = rows;
    for (std::int64_t t = 0; t < rows; ++t)
      for (std::int64_t j = 0; j < since_.stride; ++j)
        since_(t, j) = chunk.alpha(first + t, j) * (t > 0 ? since_(t - 1, j) : Scalar(1));
    if constexpr (!per_key)
      for (std::int64_t t = 0; t < rows; ++t) {  // row t is row t-1 times α_t
        for (std::int64_t s = 0; s < t; ++s) between_(t, s) = between_(t - 1, s) * chunk.alpha(first + t, 0);
        between_(t, t) = 1;
      }
  }

  /// scores ← S of the open rows: towards the tokens before the block, and the lower triangle inside it. What lies above is not to
  /// be read.
  void score(tokens const& chunk, matrix<Scalar> x, matrix<Scalar> scores) {
    for (std::int64_t t = 0; t < rows_; ++t) {
      std::fill_n(scores.row(t), first_ + rows_, Scalar{});
      decay_row<per_key>(decayed_.row(t), x.row(first_ + t), since_.row(t), x.stride);
    }
    add_product({rows_, chunk.keys, first_}, decayed_, transposed<Scalar>{past_}, scores);
    if constexpr (per_key)
      score_inside_per_key(chunk, x, scores.from(0, first_));
    else
      score_inside(chunk, x, scores.from(0, first_));
  }

  /// The open rows become the past.
  void close(tokens const& chunk) {
    Scalar const* const whole = since_.row(rows_ - 1);
    for (std::int64_t s = 0; s < first_; ++s) decay_row<per_key>(past_.row(s), past_.row(s), whole, past_.stride);
    std::fill_n(run_, since_.stride, Scalar(1));
    for (std::int64_t s = first_ + rows_ - 1; s >= first_; --s) {
      decay_row<per_key>(past_.row(s), chunk.key.row(s), run_, past_.stride);
      for (std::int64_t j = 0; j < since_.stride; ++j) run_[j] *= chunk.alpha(s, j);
    }
  }

 private:
  /// A product of α that is 0 forgets, whatever q·k is: 0·inf never happens.
  void score_inside(tokens const& chunk, matrix<Scalar> x, matrix<Scalar> scores) {
    add_product({rows_, chunk.keys, rows_}, x.from(first_), transposed<Scalar>{chunk.key.from(first_)}, scores);
    for (std::int64_t t = 0; t < rows_; ++t)
      for (std::int64_t s = 0; s <= t; ++s) scores(t, s) = between_(t, s) == 0 ? Scalar{} : scores(t, s) * between_(t, s);
  }

  void score_inside_per_key(tokens const& chunk, matrix<Scalar> x, matrix<Scalar> scores) {
    constexpr std::int64_t width = native_pack<Scalar>::size;
    for (std::int64_t s = 0; s < rows_; ++s)
      for (std::int64_t t = s; t < rows_; ++t) {
        if (t == s)
          std::copy_n(chunk.key.row(first_ + s), chunk.key.stride, run_);
        else
          decay_row<true>(run_, run_, chunk.alpha.row(first_ + t), chunk.key.stride);
        native_pack<Scalar> sum{};
        for (std::int64_t j = 0; j < x.stride; j += width) sum = sum + pack_at(x.row(first_ + t) + j) * pack_at(run_ + j);
        scores(t, s) = sum.sum();
      }
  }

  std::int64_t first_ = 0, rows_ = 0;
  matrix<Scalar> past_;     // keys of all blocks before, decayed to the open block's start
  matrix<Scalar> decayed_;  // x of the open block, decayed from its start
  matrix<Scalar> since_;    // Π α from the block's start to each of its tokens
  matrix<Scalar> between_;  // Π_{s<r≤t} α_r inside the block
  Scalar* run_;
};

}  // namespace palimpsa::cpu
