#pragma once
/// @file
/// A case token by token: a call of `step` for each token, one row for each sequence, states in a pool. Slots are
/// permuted, a state moves to another slot at every token, the slots between hold NaN, and the row of a sequence that
/// has ended is inert.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "palimpsa/arguments.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/case_call.hpp"
#include "palimpsa/shape.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {
namespace detail {

/// Pool of 2N + 1 states. Those of sequence n lie in one of two slots, by turns.
struct slot_plan {
  std::int64_t sequences;

  std::int64_t slots() const { return 2 * sequences + 1; }
  /// Where the state of sequence n lies before token t.
  std::int64_t slot(std::int64_t n, std::int64_t t) const { return (2 * (2 * n + t % 2) + 1) % slots(); }
};

/// Numbers of one token, state or other thing along the first axis or axes of a dense tensor.
template <class T> std::int64_t numbers_each(dense_tensor<T> const& x, std::size_t axes) {
  std::int64_t count = 1;
  for (std::size_t axis = axes; axis < x.shape.size(); ++axis) count *= x.shape[axis];
  return count;
}

/// Copies block i of `from` to block j of `to`, both of `size` numbers.
template <class From, class To>
void copy_block(From const* from, std::int64_t i, To* to, std::int64_t j, std::int64_t size) {
  std::copy_n(from + i * size, size, to + j * size);
}

/// The tokens that one call of step takes: [N,1,...] of a tensor [B,T,...]. Rows that are inert hold NaN.
template <class T> struct token_slice {
  dense_tensor<T> row;
  view<T const> all;
  std::int64_t size = 0;  // numbers a token

  token_slice(view<T const> tensor, std::int64_t sequences) : all(tensor) {
    if (!all.present()) return;
    std::vector<std::int64_t> extents{sequences, 1};
    for (int axis = 2; axis < all.rank; ++axis) extents.push_back(all.extent[axis]);
    row = dense_tensor<T>(extents);
    size = numbers_each(row, 2);
  }
  void clear() { std::fill(row.values.begin(), row.values.end(), row.of(std::numeric_limits<double>::quiet_NaN())); }
  void take(std::int64_t token, std::int64_t n) {
    if (all.present()) copy_block(all.data, token, row.values.data(), n, size);
  }
};

/// Between a pool and the states of the sequences.
template <class Scalar> struct state_pool {
  slot_plan plan;
  dense_tensor<Scalar> states;
  std::int64_t size = 0;

  state_pool(slot_plan slots, dense_tensor<Scalar> const& final_state, view<Scalar const> initial) : plan(slots) {
    if (!final_state.present()) return;
    auto extents = final_state.shape;
    extents[0] = plan.slots();
    states = dense_tensor<Scalar>(extents);
    size = numbers_each(states, 1);
    for (std::int64_t n = 0; n < plan.sequences; ++n) {
      Scalar* const slot = states.values.data() + plan.slot(n, 0) * size;
      if (initial.present()) {
        std::copy_n(initial.data + n * size, size, slot);
      } else {
        std::fill_n(slot, size, Scalar{});
      }
    }
  }
  void leave(std::int64_t n, std::int64_t tokens, dense_tensor<Scalar>& final_state) const {
    if (final_state.present()) copy_block(states.values.data(), plan.slot(n, tokens), final_state.values.data(), n, size);
  }
};

/// A case on its way through `step`, one token of every sequence a call.
template <class Storage> class step_runner {
 public:
  using scalar = typename storage<Storage>::scalar;

  step_runner(scan_inputs<Storage> const& in, scan_shape const& s, case_outputs<Storage>& to)
      : in_(in),
        shape_(s),
        to_(to),
        plan_{s.sequences},
        eta_(plan_, to.final_eta, in.initial_eta),
        evidence_(plan_, to.final_evidence, in.initial_evidence),
        q_(in.q, s.sequences),
        k_(in.k, s.sequences),
        v_(in.v, s.sequences),
        beta_(in.beta, s.sequences),
        log_decay_(in.log_decay, s.sequences),
        out_({s.sequences, 1, s.value_heads, s.values}),
        slot_in_(static_cast<std::size_t>(s.sequences)),
        slot_out_(slot_in_.size()) {
    if (to.out_variance.present()) variance_ = dense_tensor<scalar>(out_.shape);
  }

  /// Tokens of the longest sequence.
  std::int64_t calls() const {
    std::int64_t longest = 0;
    for (std::int64_t n = 0; n < shape_.sequences; ++n) longest = (std::max)(longest, sequence(n).length);
    return longest;
  }

  /// Token t of every sequence that has one.
  step_arguments<Storage> token(std::int64_t t) {
    each_slice([](auto& slice) { slice.clear(); });
    for (std::int64_t n = 0; n < shape_.sequences; ++n) {
      bool const inert = t >= sequence(n).length;
      slot_in_[static_cast<std::size_t>(n)] = inert ? -1 : plan_.slot(n, t);
      slot_out_[static_cast<std::size_t>(n)] = inert ? -1 : plan_.slot(n, t + 1);
      if (!inert) each_slice([&](auto& slice) { slice.take(place(n, t), n); });
    }
    return {q_.row.as_view(),
            k_.row.as_view(),
            v_.row.as_view(),
            beta_.row.as_view(),
            log_decay_.row.as_view(),
            in_.prior,
            eta_.states.as_view(),
            evidence_.states.as_view(),
            {slot_in_.data(), shape_.sequences},
            {slot_out_.data(), shape_.sequences},
            out_.as_view(),
            variance_.as_view(),
            in_.scale};
  }

  /// The reads of token t, to where they belong.
  void collect(std::int64_t t) {
    std::int64_t const size = shape_.value_heads * shape_.values;
    for (std::int64_t n = 0; n < shape_.sequences; ++n) {
      if (t >= sequence(n).length) continue;
      copy_block(out_.values.data(), n, to_.out.values.data(), place(n, t), size);
      if (variance_.present()) copy_block(variance_.values.data(), n, to_.out_variance.values.data(), place(n, t), size);
    }
  }

  /// The states after the last token.
  void finish() {
    for (std::int64_t n = 0; n < shape_.sequences; ++n) {
      eta_.leave(n, sequence(n).length, to_.final_eta);
      evidence_.leave(n, sequence(n).length, to_.final_evidence);
    }
  }

 private:
  segment sequence(std::int64_t n) const { return segment_of(shape_, in_.cu_seqlens, n); }
  /// Number of a sequence's token among those of all batch rows.
  std::int64_t place(std::int64_t n, std::int64_t t) const {
    return sequence(n).row * shape_.tokens + sequence(n).first + t;
  }
  template <class F> void each_slice(F f) { f(q_), f(k_), f(v_), f(beta_), f(log_decay_); }

  scan_inputs<Storage> in_;
  scan_shape shape_;
  case_outputs<Storage>& to_;
  slot_plan plan_;
  state_pool<scalar> eta_, evidence_;
  token_slice<Storage> q_, k_, v_;
  token_slice<scalar> beta_, log_decay_;
  dense_tensor<Storage> out_;
  dense_tensor<scalar> variance_;
  std::vector<std::int64_t> slot_in_, slot_out_;
};

}  // namespace detail

/// Runs the tokens of a scan one by one.
/// @param in dense row-major tensors, checked @param s their sizes @param to where reads and final states go
/// @param step carries out a step_arguments<Storage>
template <class Storage, class Step>
void run_steps(scan_inputs<Storage> const& in, scan_shape const& s, case_outputs<Storage>& to, Step step) {
  detail::step_runner<Storage> runner(in, s, to);
  std::int64_t const calls = runner.calls();
  for (std::int64_t t = 0; t < calls; ++t) {
    step(runner.token(t));
    runner.collect(t);
  }
  runner.finish();
}

}  // namespace palimpsa::io
