#pragma once
/// @file
/// Cutting a problem into blocks: which head and which rows a block owns. Host and device.

#include <cstdint>

#include "palimpsa/cuda/problem.hpp"
#include "palimpsa/cuda/tuning.hpp"

namespace palimpsa::cuda {

/// The head and rows a block works on.
struct block_task {
  std::int64_t sequence, head, key_head, first_row;
  int rows;      ///< rows of the head from first_row on, at most the block's
  bool reports;  ///< one block a head flags what it finds
};

namespace detail {

/// a / b for a ≥ 0, b > 0. A 64-bit division costs a GPU about a hundred instructions, a 32-bit one about twenty.
PALIMPSA_HD inline std::int64_t divide(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

}  // namespace detail

/// Blocks that share a head.
template <class Tile>
PALIMPSA_HD std::int64_t parts_of(scan_shape const& s) {
  return detail::divide(s.values + Tile::block_rows - 1, Tile::block_rows);
}

/// How many tasks a problem has.
template <class Tile>
PALIMPSA_HD std::int64_t task_count(scan_shape const& s) {
  return s.sequences * s.value_heads * parts_of<Tile>(s);
}

/// Task number -> sequence, head, rows. Tasks of one head are neighbours, so that its keys stay in the L2 cache.
template <class Tile>
PALIMPSA_HD block_task task_of(scan_shape const& s, std::int64_t task) {
  std::int64_t const parts = parts_of<Tile>(s), index = detail::divide(task, parts);
  std::int64_t const sequence = detail::divide(index, s.value_heads), head = index - sequence * s.value_heads;
  std::int64_t const part = task - index * parts, first = part * Tile::block_rows, left = s.values - first;
  std::int64_t const key_head = detail::divide(head * s.key_heads, s.value_heads);
  return {sequence, head, key_head, first, left < Tile::block_rows ? static_cast<int>(left) : Tile::block_rows, part == 0};
}

/// Part number `part` of the head that `b` lies in.
template <class Tile>
PALIMPSA_HD block_task part_of(scan_shape const& s, block_task b, int part) {
  std::int64_t const left = s.values - static_cast<std::int64_t>(part) * Tile::block_rows;
  b.first_row = static_cast<std::int64_t>(part) * Tile::block_rows;
  b.rows = left < Tile::block_rows ? static_cast<int>(left) : Tile::block_rows;
  b.reports = part == 0;
  return b;
}

}  // namespace palimpsa::cuda
