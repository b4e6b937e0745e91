#pragma once
/// @file
/// The tile of a kernel, as values one can print. A tile is fixed by K alone, so that results never depend on anything else.

#include <cstdint>

#include "palimpsa/detail/config.hpp"

namespace palimpsa::cuda {

/// How a block covers a head: lanes along the keys, rows in registers, tokens staged in shared memory.
/// Lane l of a row holds keys 4·(l + lanes·i) + c, i < keys_per_lane/4, c < 4: 16-byte accesses that neighbours continue.
template <int Keys, int Lanes, int Rows, int Threads, int Tokens, int Blocks = 1>
struct tile {
  static constexpr int keys = Keys;                          ///< padded K
  static constexpr int lanes = Lanes;                        ///< threads that share a row
  static constexpr int keys_per_lane = Keys / Lanes;         ///< cells of a row in one thread
  static constexpr int rows = Rows;                          ///< rows in one thread
  static constexpr int threads = Threads;                    ///< of a block
  static constexpr int groups = Threads / Lanes;             ///< lane groups of a block
  static constexpr int block_rows = groups * Rows;           ///< value rows of a block
  static constexpr int blocks = Blocks;                      ///< at least so many share a multiprocessor (caps registers)
  /// The same tile with another number of tokens staged, which changes nothing but when they arrive.
  template <int Others>
  using with_tokens = tile<Keys, Lanes, Rows, Threads, Others, Blocks>;
  static constexpr int tokens = Tokens;                      ///< staged at a time
  static_assert(Keys % (4 * Lanes) == 0, "palimpsa::cuda::tile: a lane holds whole groups of four keys");
  static_assert(32 % Lanes == 0 && Threads % 32 == 0, "palimpsa::cuda::tile: the lanes of a row lie in one warp");

  /// The key that cell i of a lane stands for; ≥ K means padding.
  PALIMPSA_HD static constexpr int key_of(int lane, int i) { return 4 * (lane + lanes * (i / 4)) + i % 4; }
  /// The row, within the block, of row r of a group: rows of one access are neighbours.
  PALIMPSA_HD static constexpr int row_of(int group, int r) { return group + groups * r; }
};

/// Calls f(tile) with the scan's tile for K keys; every K from 1 to 256 has one.
/// Measured on an H200 (Palimpsa, bfloat16, T = 4096, G element-steps/s): K = 96 (B8 H16 V192) 8 lanes × 4 rows 2231, × 2 rows 1968;
/// K = 128 (B4 H16 V128) 8 × 2 1796, 16 × 2 1746, 16 × 4 1701; K = 64 (V64) 8 × 1 890, 8 × 2 830, 16 × 2 857;
/// K = 256 (B2 H16 V256) 16 × 2 1475, 32 × 2 1448.
template <class F>
constexpr decltype(auto) with_tile(std::int64_t keys, F f) {
  if (keys <= 32) return f(tile<32, 8, 2, 128, 16, 6>{});
  if (keys <= 64) return f(tile<64, 8, 1, 128, 16, 8>{});
  if (keys <= 96) return f(tile<96, 8, 4, 128, 16, 3>{});
  if (keys <= 128) return f(tile<128, 16, 4, 128, 16, 4>{});
  if (keys <= 192) return f(tile<192, 16, 2, 128, 8, 4>{});
  return f(tile<256, 16, 2, 128, 8, 3>{});
}

/// Calls f(tile) with the step's tile: keys and lanes are the scan's, so that a row's sums are taken in the same order.
template <class F>
constexpr decltype(auto) with_step_tile(std::int64_t keys, F f) {
  if (keys <= 32) return f(tile<32, 8, 4, 64, 1, 6>{});
  if (keys <= 64) return f(tile<64, 8, 2, 64, 1, 6>{});
  if (keys <= 96) return f(tile<96, 8, 1, 64, 1, 6>{});
  if (keys <= 128) return f(tile<128, 16, 2, 64, 1, 6>{});
  if (keys <= 192) return f(tile<192, 16, 1, 64, 1, 6>{});
  return f(tile<256, 16, 1, 64, 1, 6>{});
}

}  // namespace palimpsa::cuda
