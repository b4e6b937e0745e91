#pragma once
/// @file
/// Moving value rows between the caller's strided tensors and packs: lane i of a pack is value row first + i.
/// Lanes past the last row hold zeros, which every rule carries along harmlessly.

#include <cstdint>
#include <cstring>

#include "palimpsa/cpu/head.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/pack.hpp"
#include "palimpsa/storage.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// `rows` channels from `first`, `step` apart, widened; zeros after them.
template <class Pack, class Storage>
PALIMPSA_INLINE Pack load_rows(Storage const* first, std::int64_t step, int rows) {
  constexpr int width = Pack::size;
  using scalar = decltype(Pack{}[0]);
  scalar x[width];
  if (step == 1 && rows == width) {
    for (int i = 0; i < width; ++i) x[i] = static_cast<scalar>(storage<Storage>::load(first[i]));
  } else if (step == 0) {
    scalar const one = static_cast<scalar>(storage<Storage>::load(*first));
    for (int i = 0; i < width; ++i) x[i] = i < rows ? one : scalar{};
  } else {
    for (int i = 0; i < width; ++i)
      x[i] = i < rows ? static_cast<scalar>(storage<Storage>::load(first[i * step])) : scalar{};
  }
  Pack p;
  std::memcpy(&p, x, sizeof p);
  return p;
}

/// Writes `rows` lanes to channels from `first`, `step` apart, rounded to storage.
template <class Pack, class Storage>
PALIMPSA_INLINE void store_rows(Pack p, Storage* first, std::int64_t step, int rows) {
  constexpr int width = Pack::size;
  using scalar = decltype(Pack{}[0]);
  using wide = decltype(storage<Storage>::load(*first));
  scalar x[width];
  std::memcpy(x, &p, sizeof p);
  if (step == 1 && rows == width) {
    for (int i = 0; i < width; ++i) first[i] = storage<Storage>::store(static_cast<wide>(x[i]));
  } else {
    for (int i = 0; i < rows; ++i) first[i * step] = storage<Storage>::store(static_cast<wide>(x[i]));
  }
}

/// Rows [first, first + rows) of a V×K state as K packs; zeros if the state is absent.
template <class Pack, class Scalar>
void load_state(plane<Scalar const> state, std::int64_t first, int rows, std::int64_t keys, Pack* cells) {
  for (std::int64_t j = 0; j < keys; ++j)
    cells[j] = state.present() ? load_rows<Pack>(&state(first, j), state.row, rows) : Pack{};
}

/// K packs back to rows [first, first + rows) of a V×K state.
template <class Pack, class Scalar>
void store_state(Pack const* cells, plane<Scalar> state, std::int64_t first, int rows, std::int64_t keys) {
  for (std::int64_t j = 0; j < keys; ++j) store_rows(cells[j], &state(first, j), state.row, rows);
}

}  // namespace palimpsa::cpu
