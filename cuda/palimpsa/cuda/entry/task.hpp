#pragma once
/// @file
/// Cutting a problem into blocks: which head and which rows a block owns. Host and device.

#include <cstdint>

#include "palimpsa/cuda/entry/problem.hpp"
#include "palimpsa/cuda/machine/tuning.hpp"

namespace palimpsa::cuda {

/// The head and rows a block works on.
struct block_task {
  std::int64_t sequence;   ///< of the call
  std::int64_t head;       ///< value head
  std::int64_t key_head;   ///< that it reads
  std::int64_t first_row;  ///< of the block
  int rows;                ///< rows of the head from first_row on, at most the block's
  bool reports;            ///< one block a head flags what it finds
};

/// Blocks that share a head.
template <class Tile>
PALIMPSA_HD int parts_of(scan_shape const& s) {
  return (static_cast<int>(s.values) + Tile::block_rows - 1) / Tile::block_rows;
}

/// How many tasks a problem has.
template <class Tile>
PALIMPSA_HD std::int64_t task_count(scan_shape const& s) {
  return s.sequences * s.value_heads * parts_of<Tile>(s);
}

/// Part `part` of a head. Kernels take sequence, head and part from a grid of three axes, and loop where an axis is longer than a
/// grid may be: 64-bit divisions here cost the one-token step a third of its time.
template <class Tile>
PALIMPSA_HD block_task task_at(scan_shape const& s, std::int64_t sequence, std::int64_t head, int part) {
  int const first = part * Tile::block_rows, left = static_cast<int>(s.values) - first;
  std::int64_t key_head = head;
  if (s.key_heads != s.value_heads)
    key_head = static_cast<std::uint32_t>(head) / (static_cast<std::uint32_t>(s.value_heads) / static_cast<std::uint32_t>(s.key_heads));
  return {sequence, head, key_head, first, left < Tile::block_rows ? left : Tile::block_rows, part == 0};
}

/// Task number -> sequence, head, part: the order in which a GPU takes them.
template <class Tile>
PALIMPSA_HD block_task task_of(scan_shape const& s, std::int64_t task) {
  std::int64_t const parts = parts_of<Tile>(s), index = task / parts;
  return task_at<Tile>(s, index / s.value_heads, index % s.value_heads, static_cast<int>(task % parts));
}

}  // namespace palimpsa::cuda
