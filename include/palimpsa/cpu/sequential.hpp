#pragma once
/// @file
/// The recurrence on the CPU, token by token. Value rows run abreast in packs; all speed is in the packs, the equations are
/// recurrence.hpp's. Tokens are taken in tiles: keys, queries and gates of a tile are widened once and serve every row of the head.

#include <cstdint>

#include "palimpsa/cpu/head.hpp"
#include "palimpsa/cpu/rows.hpp"
#include "palimpsa/cpu/solve.hpp"
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
        head_variance_(memory.take<Scalar>(tile_tokens)),
        eta_(memory.take<rows>(blocks_ * keys)),
        evidence_(memory.take<rows>(Rule::keeps_diagonal ? blocks_ * keys : 0)) {
    if constexpr (Rule::keeps_full) precision_.take(memory, keys);
  }

  /// One head: loads its state, runs its tokens, leaves states where the sink wants them.
  template <class Sink>
  void run(head_inputs<Storage, Scalar> const& in, head_outputs<Storage, Scalar> const& out, Sink const& sink) {
    load(in);
    if (in.tokens == 0) leave(in, sink, -1);
    for (std::int64_t first = 0; first < in.tokens; first += tile_tokens) {
      std::int64_t const count = in.tokens - first < tile_tokens ? in.tokens - first : tile_tokens;
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
      for (std::int64_t j = 0; j < in.keys; ++j) {
        key[j] = static_cast<Scalar>(storage<Storage>::load(in.k(first + t, j)));
        query[j] = static_cast<Scalar>(storage<Storage>::load(in.q(first + t, j)));
      }
      for (std::int64_t j = 0; j < gates_; ++j)
        alpha[j] = Rule::forget_type::retain(in.log_decay.present() ? in.log_decay(first + t, j) : Scalar{});
      if constexpr (Rule::keeps_full) {
        precision_.observe(key, alpha[0], in.beta.present() ? in.beta(first + t, 0) : Scalar(1));
        precision_.factorise(in.prior);
        precision_.solve(query);
        double variance = 0;
        for (std::int64_t j = 0; j < in.keys; ++j) {
          variance += precision_.solution[j] * static_cast<double>(query[j]);
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
    serial_lanes const lanes{static_cast<int>(in.keys)};
    std::int64_t const row = block * rows::size;
    int const n = rows_in(in, block);
    Scalar const prior = Rule::keeps_diagonal ? in.prior(0, 0) : Scalar{};
    rows *const eta = eta_ + block * in.keys, *const evidence = evidence_ + block * in.keys;
    for (std::int64_t t = 0; t < count; ++t) {
      token<Scalar> const x{key_ + t * in.keys, query_ + t * in.keys, alpha_ + t * gates_};
      rows const v = load_rows<rows>(&in.v(first + t, row), in.v.column, n);
      rows const beta = in.beta.present() ? load_rows<rows>(&in.beta(first + t, row), in.beta.column, n)
                                          : rows::broadcast(Scalar(1));
      auto const read = observe<Rule, Variance>(lanes, eta, evidence, x, v, beta, prior);
      store_rows(read.mean * in.scale, &out.out(first + t, row), out.out.column, n);
      if constexpr (Variance)
        store_rows(read.variance * (in.scale * in.scale), &out.out_variance(first + t, row), out.out_variance.column, n);
      if constexpr (Rule::keeps_full)
        if (out.out_variance.present())
          store_rows(rows::broadcast(head_variance_[t] * (in.scale * in.scale)), &out.out_variance(first + t, row),
                     out.out_variance.column, n);
      leave_rows(in, sink, first + t, block);
    }
  }

  std::int64_t blocks_, gates_;
  Scalar *key_, *query_, *alpha_, *head_variance_;
  rows *eta_, *evidence_;
  precision_matrix<Scalar> precision_;
};

}  // namespace palimpsa::cpu
