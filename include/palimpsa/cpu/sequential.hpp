#pragma once
/// @file
/// The recurrence on the CPU, token by token. Value rows run abreast in packs; all speed is in the packs, the equations are
/// recurrence.hpp's. Tokens are taken in tiles: keys, queries and gates of a tile are widened once and serve every row of the head.
///
/// Where keys do not see one another (Rule::adds), a group of them goes through a tile together, their cells in registers: Palimpsa at
/// K = V = 64 loads and stores a cell once a tile in place of once a token. A token's read is then the sum of what groups read,
/// in an order that K alone decides; so a tile of any length gives the same bits.

#include <cstdint>

#include "palimpsa/cpu/abreast.hpp"
#include "palimpsa/cpu/flush.hpp"
#include "palimpsa/cpu/head.hpp"
#include "palimpsa/cpu/key_squares.hpp"
#include "palimpsa/cpu/rows.hpp"
#include "palimpsa/cpu/solve.hpp"
#include "palimpsa/cpu/token_unit.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/recurrence.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Tokens a tile: 32 keys, queries and gates of K = 256 floats fill 96 KB at most, and tiles of 16 to 128 ran alike.
inline constexpr std::int64_t tile_tokens = 32;

/// Where one head of one sequence writes.
template <class Storage, class Scalar>
struct head_outputs {
  plane<Storage> out;          ///< [T,V]
  plane<Scalar> out_variance;  ///< [T,V]; absent = not asked for
};

/// The state after the last token, or none: what a scan leaves. A step has a sink of its own.
template <class Scalar>
struct final_state {
  std::int64_t tokens;     ///< T
  plane<Scalar> eta;       ///< absent = not kept
  plane<Scalar> evidence;  ///< absent = not kept

  /// η after token t (t = -1: before the first); absent where it is not kept.
  plane<Scalar> eta_after(std::int64_t t) const { return t + 1 == tokens ? eta : plane<Scalar>{}; }
  /// J after token t.
  plane<Scalar> evidence_after(std::int64_t t) const { return t + 1 == tokens ? evidence : plane<Scalar>{}; }
};

/// Runs heads one after another in one thread's scratch.
template <class Rule, class Storage, class Scalar>
class sequential_runner {
 public:
  using rows = native_pack<Scalar>;  ///< a pack of value rows

  /// Takes the scratch of one thread; counts only if the arena does.
  sequential_runner(arena& memory, std::int64_t keys, std::int64_t values)
      : blocks_((values + rows::size - 1) / rows::size),
        gates_(Rule::forget_type::scope == gate_scope::key ? keys : 1),
        key_(memory.take<Scalar>(tile_tokens * keys)),
        query_(memory.take<Scalar>(tile_tokens * keys)),
        alpha_(memory.take<Scalar>(tile_tokens * gates_)),
        unit_(memory.take<Scalar>(tile_tokens)),
        head_variance_(memory.take<Scalar>(tile_tokens)),
        eta_(memory.take<rows>(blocks_ * keys)),
        evidence_(memory.take<rows>(Rule::keeps_diagonal ? blocks_ * keys : 0)),
        value_(memory.take<rows>(tile_tokens)),
        beta_(memory.take<rows>(tile_tokens)),
        mean_(memory.take<rows>(tile_tokens)),
        variance_(memory.take<rows>(Rule::keeps_diagonal ? tile_tokens : 0)),
        spare_(memory.take<rows>(Rule::keeps_diagonal && !Rule::adds ? keys : 0)) {
    squares_.take(memory, keys, tile_tokens);
    if constexpr (Rule::keeps_full) precision_.take(memory, keys);
  }

  /// One head: loads its state, runs its tokens, leaves states where the sink wants them.
  template <class Sink>
  void run(head_inputs<Storage, Scalar> const& in, head_outputs<Storage, Scalar> const& out, Sink const& sink) {
    load(in);
    if (in.tokens == 0) leave(in, sink, -1);
    flush_small const mode(small_is_zero<Rule>(in));
    for (std::int64_t first = 0, count = 0; first < in.tokens; first += count) {
      count = tile_at(in, sink, first);
      prepare(in, sink, first, count);
      for (std::int64_t block = 0; block < blocks_; ++block) {
        if (Rule::keeps_diagonal && out.out_variance.present())
          run_rows<Rule::keeps_diagonal>(in, out, sink, first, count, block);
        else
          run_rows<false>(in, out, sink, first, count, block);
      }
    }
  }

 private:
  using weighting = typename Rule::weighting_type;

  /// Tokens of the tile at `first`: it ends where a state is wanted.
  template <class Sink>
  static std::int64_t tile_at(head_inputs<Storage, Scalar> const& in, Sink const& sink, std::int64_t first) {
    std::int64_t count = 1;
    auto const wanted = [&](std::int64_t t) { return sink.eta_after(t).present() || sink.evidence_after(t).present(); };
    while (count < tile_tokens && first + count < in.tokens && !wanted(first + count - 1)) ++count;
    return count;
  }

  int rows_in(head_inputs<Storage, Scalar> const& in, std::int64_t block) const {
    std::int64_t const left = in.values - block * rows::size;
    return left < rows::size ? static_cast<int>(left) : rows::size;
  }

  void load(head_inputs<Storage, Scalar> const& in) {
    for (std::int64_t block = 0; block < blocks_; ++block) {
      load_state(in.eta, block * rows::size, rows_in(in, block), in.keys, eta_ + block * in.keys);
      if constexpr (Rule::keeps_diagonal)
        load_state(in.evidence, block * rows::size, rows_in(in, block), in.keys, evidence_ + block * in.keys);
    }
    if constexpr (Rule::keeps_full) precision_.load(in.evidence);
  }

  template <class Sink>
  void leave(head_inputs<Storage, Scalar> const& in, Sink const& sink, std::int64_t t) {
    for (std::int64_t block = 0; block < blocks_; ++block) leave_rows(in, sink, t, block);
    if constexpr (Rule::keeps_full)
      if (sink.evidence_after(t).present()) precision_.store(sink.evidence_after(t));
  }

  template <class Sink>
  void leave_rows(head_inputs<Storage, Scalar> const& in, Sink const& sink, std::int64_t t, std::int64_t block) {
    int const n = rows_in(in, block);
    if (auto const eta = sink.eta_after(t); eta.present())
      store_state(eta_ + block * in.keys, eta, block * rows::size, n, in.keys);
    if constexpr (Rule::keeps_diagonal)
      if (auto const evidence = sink.evidence_after(t); evidence.present())
        store_state(evidence_ + block * in.keys, evidence, block * rows::size, n, in.keys);
  }

  /// Widens keys, queries and gates of a tile; a full memory takes its tokens in and turns each query q into x = Λ⁻¹q.
  template <class Sink>
  void prepare(head_inputs<Storage, Scalar> const& in, Sink const& sink, std::int64_t first, std::int64_t count) {
    for (std::int64_t t = 0; t < count; ++t) {
      Scalar *const key = key_ + t * in.keys, *const query = query_ + t * in.keys, *const alpha = alpha_ + t * gates_;
      widen(in.k, first + t, in.keys, key);
      widen(in.q, first + t, in.keys, query);
      unit_[t] = token_unit<weighting>(key, in.keys);
      if (unit_[t] != 1)
        for (std::int64_t j = 0; j < in.keys; ++j) key[j] *= unit_[t];
      squares_.look(t, key, query);
      for (std::int64_t j = 0; j < gates_; ++j)
        alpha[j] = Rule::forget_type::retain(in.log_decay.present() ? in.log_decay(first + t, j) : Scalar{});
      if constexpr (Rule::keeps_full) {
        precision_.observe(key, alpha[0], (in.beta.present() ? in.beta(first + t, 0) : Scalar(1)) * beta_unit(unit_[t]));
        precision_.factorise(in.prior);
        precision_.solve(query);
        double variance = 0;
        for (std::int64_t j = 0; j < in.keys; ++j) {
          variance = fused(precision_.solution[j], static_cast<double>(query[j]), variance);
          query[j] = static_cast<Scalar>(precision_.solution[j]);
        }
        head_variance_[t] = static_cast<Scalar>(variance);
        if (sink.evidence_after(first + t).present()) precision_.store(sink.evidence_after(first + t));
      }
    }
  }

  /// The tokens of a tile over one pack of rows.
  template <bool Variance, class Sink>
  void run_rows(head_inputs<Storage, Scalar> const& in, head_outputs<Storage, Scalar> const& out, Sink const& sink,
                std::int64_t first, std::int64_t count, std::int64_t block) {
    std::int64_t const row = block * rows::size;
    int const n = rows_in(in, block);
    auto const open = [&](std::int64_t t) PALIMPSA_INLINE_LAMBDA {
      value_[t] = load_rows<rows>(&in.v(first + t, row), in.v.column, n);
      beta_[t] = in.beta.present() ? load_rows<rows>(&in.beta(first + t, row), in.beta.column, n) : rows::broadcast(Scalar(1));
      mean_[t] = rows{};
      if constexpr (Variance) variance_[t] = rows{};
      if (unit_[t] == 1) return;
      value_[t] = value_[t] * value_unit<weighting>(unit_[t]);
      beta_[t] = beta_[t] * beta_unit(unit_[t]);
    };
    if constexpr (Rule::adds) {
      std::int64_t j = 0;
      for (std::int64_t t = 0; t < count; ++t) open(t);
      constexpr int group = keys_abreast<Rule>;
      for (; j + group <= in.keys; j += group) run_keys<Variance, group>(in, count, block, j);
      for (; j < in.keys; ++j) run_keys<Variance, 1>(in, count, block, j);
      for (std::int64_t t = 0; t < count; ++t) answer_rows<Variance>(in, out, first, t, row, n);
    } else {
      rows *const eta = eta_ + block * in.keys, *const evidence = evidence_ + block * in.keys;
      for (std::int64_t t = 0; t < count; ++t) {
        open(t);
        take_in<Variance>(sparing_lanes<rows>{{static_cast<int>(in.keys)}, spare_}, in, t, 0, eta, evidence);
        answer_rows<Variance>(in, out, first, t, row, n);
      }
    }
    leave_rows(in, sink, first + count - 1, block);
  }

  /// Keys [j, j + Keys) of one pack of rows, through the tokens of a tile.
  template <bool Variance, int Keys>
  void run_keys(head_inputs<Storage, Scalar> const& in, std::int64_t count, std::int64_t block, std::int64_t j) {
    rows *const eta = eta_ + block * in.keys + j, *const evidence = evidence_ + block * in.keys + j;
    rows e[Keys], J[Rule::keeps_diagonal ? Keys : 1];
    for (int c = 0; c < Keys; ++c) {
      e[c] = eta[c];
      if constexpr (Rule::keeps_diagonal) J[c] = evidence[c];
    }
    for (std::int64_t t = 0; t < count; ++t) take_in<Variance>(abreast_lanes<Keys>{}, in, t, j, e, J);
    for (int c = 0; c < Keys; ++c) {
      eta[c] = e[c];
      if constexpr (Rule::keeps_diagonal) evidence[c] = J[c];
    }
  }

  /// The channels of one token, widened; neighbours in a loop of their own, which compilers turn into vectors.
  static void widen(plane<Storage const> tensor, std::int64_t t, std::int64_t channels, Scalar* into) {
    Storage const* const from = &tensor(t, 0);
    if (tensor.column == 1) {
      for (std::int64_t j = 0; j < channels; ++j) into[j] = static_cast<Scalar>(storage<Storage>::load(from[j]));
    } else {
      for (std::int64_t j = 0; j < channels; ++j) into[j] = static_cast<Scalar>(storage<Storage>::load(from[j * tensor.column]));
    }
  }

  /// One token over the keys from j of one pack of rows; its read is added to the tile's.
  template <bool Variance, class Lanes>
  PALIMPSA_INLINE void take_in(Lanes lanes, head_inputs<Storage, Scalar> const& in, std::int64_t t, std::int64_t j, rows* eta,
                               rows* evidence) {
    Scalar const prior = Rule::keeps_diagonal ? in.prior(0, 0) : Scalar{};
    Scalar const alpha = alpha_[t * gates_];  // a copy on the stack, which no store to a state can change
    token<Scalar> const x{key_ + t * in.keys + j, query_ + t * in.keys + j,
                          Rule::forget_type::scope == gate_scope::key ? alpha_ + t * gates_ + j : &alpha};
    auto const read = observe<Rule, Variance>(lanes, eta, evidence, squares_.with(x, t), value_[t], beta_[t], prior);
    mean_[t] = mean_[t] + read.mean;
    if constexpr (Variance) variance_[t] = variance_[t] + read.variance;
  }

  /// The reads of token t of a tile to the caller's tensors.
  template <bool Variance>
  PALIMPSA_INLINE void answer_rows(head_inputs<Storage, Scalar> const& in, head_outputs<Storage, Scalar> const& out,
                                   std::int64_t first, std::int64_t t, std::int64_t row, int n) {
    store_rows(mean_[t] * in.scale, &out.out(first + t, row), out.out.column, n);
    if constexpr (Variance)
      store_rows(variance_[t] * in.scale * in.scale, &out.out_variance(first + t, row), out.out_variance.column, n);
    if constexpr (Rule::keeps_full)
      if (out.out_variance.present())
        store_rows(rows::broadcast(head_variance_[t] * in.scale * in.scale), &out.out_variance(first + t, row),
                   out.out_variance.column, n);
  }

  std::int64_t blocks_, gates_;
  Scalar *key_, *query_, *alpha_, *unit_, *head_variance_;
  rows *eta_, *evidence_;
  rows *value_, *beta_, *mean_, *variance_;  // of the tokens of a tile, one pack of rows
  rows* spare_;                              // of one pack of rows, within a token
  key_squares<Rule, Scalar> squares_;
  precision_matrix<Scalar> precision_;
};

}  // namespace palimpsa::cpu
