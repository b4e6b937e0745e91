#pragma once
/// @file
/// The sizes of a call, read off its tensors once they are known to agree.

#include <cstdint>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/view.hpp"

namespace palimpsa {

/// The sizes every tensor of a call agrees on.
struct scan_shape {
  std::int64_t batch = 0;        ///< B
  std::int64_t tokens = 0;       ///< T, per batch row
  std::int64_t key_heads = 0;    ///< HK
  std::int64_t value_heads = 0;  ///< HV
  std::int64_t keys = 0;         ///< K
  std::int64_t values = 0;       ///< V
  std::int64_t sequences = 0;    ///< N

  /// Value heads that share a key head.
  PALIMPSA_HD std::int64_t group() const { return key_heads == 0 ? 1 : value_heads / key_heads; }
};

/// Where a sequence lies: tokens [first, first + length) of a batch row.
struct segment {
  std::int64_t row = 0;     ///< batch row
  std::int64_t first = 0;   ///< its first token
  std::int64_t length = 0;  ///< its number of tokens, ≥ 0
};

/// Sequence n of a call: the whole of row n, or a packed segment of row 0.
PALIMPSA_HD inline segment segment_of(scan_shape const& shape, index_view const& cu_seqlens, std::int64_t n) {
  if (!cu_seqlens.present()) return {n, 0, shape.tokens};
  std::int64_t const first = cu_seqlens(n);
  return {0, first, cu_seqlens(n + 1) - first};
}

}  // namespace palimpsa
