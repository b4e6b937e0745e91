#pragma once
/// @file
/// The tokens of a chunk, widened once for all that walk over them: keys, queries and gates of a head, values and cotangents of a
/// block of rows.
///
/// Rows that lie as the packs want them are copied whole. That matters: element by element, and with every pack put together on
/// the stack, this file took 4 of the 20 ms of Gated DeltaNet (T 4096, H 4, K 64, V 64); copied whole, 1.5.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "palimpsa/adjoint.hpp"
#include "palimpsa/cpu/abreast.hpp"
#include "palimpsa/cpu/backward_head.hpp"
#include "palimpsa/cpu/key_squares.hpp"
#include "palimpsa/cpu/rows.hpp"
#include "palimpsa/cpu/token_unit.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {
namespace detail {

/// channels numbers a token, tokens [first, first + count), widened.
template <class Storage, class Scalar>
void widen(plane<Storage const> tensor, std::int64_t first, std::int64_t count, std::int64_t channels, Scalar* to) {
  for (std::int64_t t = 0; t < count; ++t) {
    Storage const* const from = &tensor(first + t, 0);
    Scalar* const row = to + t * channels;
    if constexpr (std::is_same_v<Storage, Scalar>)
      if (tensor.column == 1) {
        std::copy_n(from, channels, row);
        continue;
      }
    for (std::int64_t j = 0; j < channels; ++j)
      row[j] = static_cast<Scalar>(storage<Storage>::load(from[j * tensor.column]));
  }
}

/// The reverse of widen, rounding once.
template <class Storage, class Scalar>
void narrow(Scalar const* from, plane<Storage> tensor, std::int64_t first, std::int64_t count, std::int64_t channels) {
  using wide = typename storage<Storage>::scalar;
  for (std::int64_t t = 0; t < count; ++t) {
    Storage* const to = &tensor(first + t, 0);
    Scalar const* const row = from + t * channels;
    if (std::is_same_v<Storage, Scalar> && tensor.column == 1) {
      std::memcpy(static_cast<void*>(to), row, static_cast<std::size_t>(channels) * sizeof(Scalar));
    } else {
      for (std::int64_t j = 0; j < channels; ++j)
        to[j * tensor.column] = storage<Storage>::store(static_cast<wide>(row[j]));
    }
  }
}

/// Rows [row, row + n) of tokens [first, first + count) as a pack a token, each times `factor`, `step` packs apart.
template <class Rows, class Storage, class Scalar>
void gather(plane<Storage const> tensor, std::int64_t first, std::int64_t count, std::int64_t row, int n, Scalar factor,
            Rows* to, std::int64_t step) {
  Storage const* from = &tensor(first, row);
  if constexpr (std::is_same_v<Storage, Scalar>) {
    if (n == Rows::size && tensor.column == 1) {
      for (std::int64_t t = 0; t < count; ++t, from += tensor.row) {
        Rows whole;
        std::memcpy(&whole, from, sizeof whole);
        to[t * step] = whole * factor;
      }
      return;
    }
    if (n == Rows::size && tensor.column == 0) {
      for (std::int64_t t = 0; t < count; ++t, from += tensor.row) to[t * step] = Rows::broadcast(*from * factor);
      return;
    }
  }
  for (std::int64_t t = 0; t < count; ++t, from += tensor.row)
    to[t * step] = load_rows<Rows>(from, tensor.column, n) * factor;
}

/// The reverse of gather.
template <class Rows, class Storage>
PALIMPSA_INLINE void scatter(Rows const& rows, plane<Storage> tensor, std::int64_t t, std::int64_t row, int n) {
  Storage* const to = &tensor(t, row);
  if constexpr (std::is_same_v<Storage, decltype(Rows{}[0])>) {
    if (n == Rows::size && tensor.column == 1) {
      std::memcpy(to, &rows, sizeof rows);
      return;
    }
  }
  store_rows(rows, to, tensor.column, n);
}

}  // namespace detail

/// The widened tokens of one chunk.
template <class Rule, class Storage, class Scalar, class Work>
struct backward_tokens {
  using rows = native_pack<Work>;                                                ///< a pack of value rows
  using forget = typename Rule::forget_type;                                       ///< how the rule forgets
  using weighting = typename Rule::weighting_type;                                 ///< whether values arrive weighted
  static constexpr bool per_key = forget::scope == gate_scope::key;                ///< gates are one a key

  std::int64_t keys = 0;    ///< K
  std::int64_t gates = 0;   ///< gates a token
  Work* key = nullptr;    ///< [chunk, K]
  Work* query = nullptr;  ///< [chunk, K]
  Work* alpha = nullptr;  ///< [chunk, gates]
  Work* unit = nullptr;   ///< [chunk], in which keys, values and β are (token_unit.hpp)
  rows* value = nullptr;    ///< [chunk], of one block of rows
  rows* beta = nullptr;     ///< [chunk], of one block of rows
  read_cotangent<rows>* read = nullptr;  ///< [chunk], of one block of rows
  rows* spare = nullptr;    ///< [K], of one block of rows within a token
  key_squares<Rule, Work> squares;  ///< of the chunk's keys

  /// Takes its arrays from the arena.
  void take(arena& memory, std::int64_t K, std::int64_t chunk) {
    keys = K;
    gates = per_key ? K : 1;
    key = memory.take<Work>(chunk * K);
    query = memory.take<Work>(chunk * K);
    alpha = memory.take<Work>(chunk * gates);
    unit = memory.take<Work>(chunk);
    value = memory.take<rows>(chunk);
    beta = memory.take<rows>(chunk);
    read = memory.take<read_cotangent<rows>>(chunk);
    spare = memory.take<rows>(Rule::keeps_diagonal && !Rule::adds ? K : 0);
    squares.take(memory, K, chunk);
  }

  /// Keys and queries of tokens [first, first + count), and the units keys are in.
  void load_keys(plane<Storage const> keys_of_head, plane<Storage const> queries, std::int64_t first, std::int64_t count) {
    detail::widen(queries, first, count, keys, query);
    detail::widen(keys_of_head, first, count, keys, key);
    for (std::int64_t t = 0; t < count; ++t) {
      unit[t] = token_unit<weighting>(key + t * keys, keys);
      if (unit[t] != 1)
        for (std::int64_t j = 0; j < keys; ++j) key[t * keys + j] *= unit[t];
      squares.look(t, key + t * keys, query + t * keys);
    }
  }

  /// α of tokens [first, first + count) of a head.
  void open_gates(head_inputs<Storage, Scalar> const& in, std::int64_t first, std::int64_t count) {
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t j = 0; j < gates; ++j)
        alpha[t * gates + j] = forget::retain(in.log_decay.present() ? in.log_decay(first + t, j) : Scalar{});
  }

  /// Values and β of rows [row, row + n).
  void load_values(head_inputs<Storage, Scalar> const& in, std::int64_t first, std::int64_t count, std::int64_t row, int n) {
    detail::gather(in.v, first, count, row, n, Work(1), value, 1);
    if (in.beta.present())
      detail::gather(in.beta, first, count, row, n, Work(1), beta, 1);
    else
      for (std::int64_t t = 0; t < count; ++t) beta[t] = rows::broadcast(Work(1));
    for (std::int64_t t = 0; t < count; ++t) {
      if (unit[t] == 1) continue;
      value[t] = value[t] * value_unit<weighting>(unit[t]);
      beta[t] = beta[t] * beta_unit(unit[t]);
    }
  }

  /// What the loss asks of the reads of rows [row, row + n).
  void load_cotangents(head_backward<Storage, Scalar> const& h, std::int64_t first, std::int64_t count, std::int64_t row, int n) {
    constexpr std::int64_t step = sizeof(read_cotangent<rows>) / sizeof(rows);
    Work const scale = static_cast<Work>(h.in.scale);
    for (std::int64_t t = 0; t < count; ++t) read[t] = read_cotangent<rows>{rows{}, rows{}};
    if (h.out.present()) detail::gather(h.out, first, count, row, n, scale, &read->mean, step);
    if (h.out_variance.present()) detail::gather(h.out_variance, first, count, row, n, scale * scale, &read->variance, step);
  }

  /// β of a whole head for token first + t, in the token's unit.
  Work head_beta(head_inputs<Storage, Scalar> const& in, std::int64_t first, std::int64_t t) const {
    return (in.beta.present() ? static_cast<Work>(in.beta(first + t, 0)) : Work(1)) * beta_unit(unit[t]);
  }
};

/// Takes in token t of a chunk over the keys from `first` of one block of rows, without its read.
template <class Rule, class Lanes, class Storage, class Scalar, class Work>
PALIMPSA_INLINE void take_in(Lanes lanes, backward_tokens<Rule, Storage, Scalar, Work> const& x, std::int64_t t, std::int64_t first,
                             Work prior, native_pack<Work>* eta, native_pack<Work>* evidence) {
  Work const alpha = x.alpha[t * x.gates];  // a copy on the stack, which no store to a state can change
  token<Work> const now{x.key + t * x.keys + first, x.query + t * x.keys + first,
                          x.per_key ? x.alpha + t * x.gates + first : &alpha};
  observe<Rule>(lanes, eta, evidence, x.squares.with(now, t), x.value[t], x.beta[t], prior);
}

/// walk() for `Keys` keys from `first`.
template <int Keys, class Rule, class Storage, class Scalar, class Work, class Visit>
void walk_keys(backward_tokens<Rule, Storage, Scalar, Work> const& x, std::int64_t first, std::int64_t count, Work prior,
               native_pack<Work>* eta, native_pack<Work>* evidence, Visit visit) {
  native_pack<Work> e[Keys], J[Keys];
  for (int j = 0; j < Keys; ++j) {
    e[j] = eta[first + j];
    if constexpr (Rule::keeps_diagonal) J[j] = evidence[first + j];
  }
  for (std::int64_t t = 0; t < count; ++t) {
    visit(t, first, std::int64_t{Keys}, e, J);
    take_in(abreast_lanes<Keys>{}, x, t, first, prior, e, J);
  }
  for (int j = 0; j < Keys; ++j) {
    eta[first + j] = e[j];
    if constexpr (Rule::keeps_diagonal) evidence[first + j] = J[j];
  }
}

/// Takes in tokens [0, count) of a chunk over one block of rows, in place, without their reads. visit(t, first, keys, eta, J) sees the
/// cells of keys [first, first + keys) before token t.
template <class Rule, class Storage, class Scalar, class Work, class Visit>
void walk(backward_tokens<Rule, Storage, Scalar, Work> const& x, std::int64_t count, Work prior, native_pack<Work>* eta,
          native_pack<Work>* evidence, Visit visit) {
  if constexpr (Rule::adds) {
    std::int64_t first = 0;
    constexpr int group = keys_abreast<Rule>;
    for (; first + group <= x.keys; first += group) walk_keys<group>(x, first, count, prior, eta, evidence, visit);
    for (; first < x.keys; ++first) walk_keys<1>(x, first, count, prior, eta, evidence, visit);
  } else {
    for (std::int64_t t = 0; t < count; ++t) {
      visit(t, std::int64_t{0}, x.keys, eta, evidence);
      take_in(sparing_lanes<native_pack<Work>>{{static_cast<int>(x.keys)}, x.spare}, x, t, 0, prior, eta, evidence);
    }
  }
}

}  // namespace palimpsa::cpu
