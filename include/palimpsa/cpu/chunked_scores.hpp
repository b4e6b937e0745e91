#pragma once
/// @file
/// The scores between the tokens of a chunk,
///
///     S_ts = Σ_j x_tj k_sj Π_{s<r≤t} α_rj   for s ≤ t,   x = q for a read, x = k for the system of a DeltaNet,
///
/// 16 rows at a time, so that scratch grows with the chunk and not with its square. Towards the tokens before the block the decay
/// falls into two products of α, Π_{s<r<r0} and Π_{r0≤r≤t}; inside the block it is a 16×16 table.
///
///     a gate a head    one product X Kᵀ, then the decays of the block's rows, worked out once for both x
///     a gate a key     the first product of α kept with the keys, which decay from block to block, the second multiplied into x; inside
///                      the block pair by pair
///
/// Keys lie transposed, [K,C]: tokens are the columns that a product takes in packs.

#include <algorithm>
#include <cstdint>

#include "palimpsa/cpu/chunked_tokens.hpp"
#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Rows of scores that are worked out together.
inline constexpr std::int64_t block_rows = 16;

/// Scores of a chunk, block after block: begin(), then open(), score() as often as needed, close().
template <class Rule, class Storage, class Scalar>
class chunk_scores {
 public:
  using tokens = chunk_tokens<Rule, Storage, Scalar>;  ///< the chunk
  static constexpr bool per_key = tokens::per_key;      ///< whether every key has a gate of its own

  /// Takes its scratch; counts only if the arena does.
  chunk_scores(arena& memory, std::int64_t most, std::int64_t keys)
      : past_(take_matrix<Scalar>(memory, keys, most)),
        since_(take_matrix<Scalar>(memory, per_key ? block_rows : 1, keys)),
        near_(take_matrix<Scalar>(memory, per_key ? block_rows : 1, keys)),
        decayed_(take_matrix<Scalar>(memory, per_key ? block_rows : 1, keys)),
        decay_(take_matrix<Scalar>(memory, block_rows, per_key ? 1 : most)),
        reach_(memory.take<double>(per_key ? since_.stride : most)),
        run_(memory.take<Scalar>(since_.stride)) {}

  /// A chunk whose keys are loaded.
  void begin([[maybe_unused]] tokens const& chunk) {
    if constexpr (!per_key) transpose(chunk.key, chunk.count, chunk.keys, past_);
  }

  /// Tokens [first, first + rows) are next.
  void open(tokens const& chunk, std::int64_t first, std::int64_t rows) {
    first_ = first;
    rows_ = rows;
    if constexpr (per_key)
      open_keys(chunk);
    else
      open_head(chunk);
  }

  /// scores ← S of the open rows: towards the tokens before the block, and the lower triangle inside it. What lies above is not to
  /// be read.
  void score(tokens const& chunk, matrix<Scalar> x, matrix<Scalar> scores) {
    std::int64_t const columns = first_ + rows_;
    for (std::int64_t t = 0; t < rows_; ++t) std::fill_n(scores.row(t), padded_columns<Scalar>(columns), Scalar{});
    if constexpr (per_key) {
      for (std::int64_t t = 0; t < rows_; ++t) decay_row<true>(decayed_.row(t), x.row(first_ + t), since_.row(t), x.stride);
      if (first_ > 0) add_product({rows_, chunk.keys, first_}, decayed_, past_, scores);
      score_inside(chunk, x, scores.from(0, first_));
    } else {
      add_product({rows_, chunk.keys, columns}, x.from(first_), past_, scores);
      for (std::int64_t t = 0; t < rows_; ++t) decay_scores(scores.row(t), decay_.row(t), first_ + t + 1);
    }
  }

  /// The open rows become the past.
  void close(tokens const& chunk) {
    if constexpr (per_key)
      close_keys(chunk);
    else
      close_head(chunk);
  }

 private:
  /// decay_ ← Π α from each token so far to each of the block, rounded once. reach_: from each token before the block to its start.
  void open_head(tokens const& chunk) {
    double since = 1;
    for (std::int64_t t = 0; t < rows_; ++t) {
      double const alpha = chunk.alpha(first_ + t, 0);
      since = decayed<Scalar>(since, alpha);
      Scalar* const row = decay_.row(t);
      for (std::int64_t s = 0; s < first_; ++s) row[s] = static_cast<Scalar>(decayed<Scalar>(reach_[s], since));
      for (std::int64_t s = first_; s < first_ + t; ++s) reach_[s] = decayed<Scalar>(reach_[s], alpha);
      reach_[first_ + t] = 1;
      for (std::int64_t s = first_; s <= first_ + t; ++s) row[s] = static_cast<Scalar>(reach_[s]);
    }
    whole_ = since;
  }

  void close_head(tokens const&) {
    for (std::int64_t s = 0; s < first_; ++s) reach_[s] = decayed<Scalar>(reach_[s], whole_);
  }

  /// A product of α that is 0 forgets, whatever x·k is: 0·inf never happens.
  static void decay_scores(Scalar* scores, Scalar const* decay, std::int64_t count) {
    for (std::int64_t s = 0; s < count; ++s) {
      Scalar const product = scores[s] * decay[s];
      scores[s] = decay[s] == 0 ? Scalar{} : product;
    }
  }

  void open_keys(tokens const& chunk) {
    std::fill_n(reach_, since_.stride, 1.0);
    for (std::int64_t t = 0; t < rows_; ++t)
      for (std::int64_t j = 0; j < since_.stride; ++j) {
        double const alpha = chunk.alpha(first_ + t, j);
        reach_[j] = decayed<Scalar>(reach_[j], alpha);
        since_(t, j) = static_cast<Scalar>(reach_[j]);
        near_(t, j) = static_cast<Scalar>(alpha);
      }
  }

  void close_keys(tokens const& chunk) {
    Scalar const* const whole = since_.row(rows_ - 1);
    for (std::int64_t j = 0; j < chunk.keys; ++j) scale_row(past_.row(j), past_.row(j), whole[j], padded_columns<Scalar>(first_));
    std::fill_n(reach_, since_.stride, 1.0);
    for (std::int64_t s = first_ + rows_ - 1; s >= first_; --s)
      for (std::int64_t j = 0; j < chunk.keys; ++j) {
        past_(j, s) = chunk.key(s, j) * static_cast<Scalar>(reach_[j]);
        reach_[j] = decayed<Scalar>(reach_[j], chunk.alpha(s, j));
      }
  }

  void score_inside(tokens const& chunk, matrix<Scalar> x, matrix<Scalar> scores) {
    constexpr std::int64_t width = native_pack<Scalar>::size;
    for (std::int64_t s = 0; s < rows_; ++s)
      for (std::int64_t t = s; t < rows_; ++t) {
        if (t == s)
          std::copy_n(chunk.key.row(first_ + s), chunk.key.stride, run_);
        else
          decay_row<true>(run_, run_, near_.row(t), chunk.key.stride);
        native_pack<Scalar> sum{};
        for (std::int64_t j = 0; j < x.stride; j += width)
          sum = fused(pack_at(x.row(first_ + t) + j), pack_at(run_ + j), sum);
        scores(t, s) = sum.sum();
      }
  }

  /// into ← fromᵀ, the columns past `rows` zeros up to a whole pack.
  static void transpose(matrix<Scalar> from, std::int64_t rows, std::int64_t columns, matrix<Scalar> into) {
    std::int64_t const padded = padded_columns<Scalar>(rows);
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t s = 0; s < rows; ++s) into(j, s) = from(s, j);
      std::fill(into.row(j) + rows, into.row(j) + padded, Scalar{});
    }
  }

  std::int64_t first_ = 0, rows_ = 0;
  matrix<Scalar> past_;     // keys [K,C]: all of the chunk, or those of all blocks before, decayed to the open block's start
  matrix<Scalar> since_;    // Π α from the block's start to each of its tokens, a key
  matrix<Scalar> near_;     // α of the block, a key
  matrix<Scalar> decayed_;  // x of the open block, decayed from its start
  matrix<Scalar> decay_;    // Π α from each token of the chunk to each of the block, a head
  double* reach_;           // running products: a token, or a key
  double whole_ = 1;        // over the block
  Scalar* run_;
};

}  // namespace palimpsa::cpu
