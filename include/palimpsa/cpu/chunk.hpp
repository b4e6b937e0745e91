#pragma once
/// @file
/// One chunk of tokens of one head as matrices, and the decays between its tokens.
///
/// Every decay is a running product of retained shares α ≤ 1: nothing is exponentiated twice, nothing is divided by a decay, and
/// what comes after a gate of -1000 or -inf starts again from 1. (Differences of running sums of log_decay would be inf - inf there.)

#include <algorithm>
#include <cstdint>

#include "palimpsa/cpu/head.hpp"
#include "palimpsa/cpu/products.hpp"
#include "palimpsa/rule.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::cpu {

/// A chunk of C tokens, widened. Matrices are row-major, one token a row.
template <class Rule, class Storage, class Scalar>
class chunk_tokens {
 public:
  /// Whether every key has a gate of its own.
  static constexpr bool per_key = Rule::forget_type::scope == gate_scope::key;

  /// Takes the arrays of a chunk of at most `most` tokens; counts only if the arena does.
  chunk_tokens(arena& memory, std::int64_t most, std::int64_t keys, std::int64_t values)
      : keys_(keys),
        values_(values),
        gates_(per_key ? keys : 1),
        key_(memory.take<Scalar>(most * keys)),
        query_(memory.take<Scalar>(most * keys)),
        written_(memory.take<Scalar>(most * values)),
        beta_(memory.take<Scalar>(most * values)),
        alpha_(memory.take<Scalar>(most * gates_)),
        from_start_(memory.take<Scalar>(most * gates_)),
        to_end_(memory.take<Scalar>(most * gates_)),
        between_(memory.take<Scalar>(per_key ? keys : most * most)) {}

  /// Reads tokens [first, first + count) of a head.
  void load(head_inputs<Storage, Scalar> const& in, std::int64_t first, std::int64_t count) {
    tokens_ = count;
    for (std::int64_t t = 0; t < count; ++t) {
      if (first + count + t < in.tokens) {
        expect(&in.k(first + count + t, 0), in.k.column, keys_);
        expect(&in.q(first + count + t, 0), in.q.column, keys_);
        expect(&in.v(first + count + t, 0), in.v.column, values_);
      }
      widen(&in.k(first + t, 0), in.k.column, keys_, key_ + t * keys_);
      widen(&in.q(first + t, 0), in.q.column, keys_, query_ + t * keys_);
      widen(&in.v(first + t, 0), in.v.column, values_, written_ + t * values_);
      Scalar* const beta = beta_ + t * values_;
      if (in.beta.present())
        widen(&in.beta(first + t, 0), in.beta.column, values_, beta);
      else
        std::fill_n(beta, values_, Scalar(1));
      Scalar* const written = written_ + t * values_;
      for (std::int64_t i = 0; i < values_; ++i) written[i] = Rule::weighting_type::write(beta[i], written[i]);
      for (std::int64_t j = 0; j < gates_; ++j)
        alpha_[t * gates_ + j] = Rule::forget_type::retain(in.log_decay.present() ? in.log_decay(first + t, j) : Scalar{});
    }
    run_decays();
  }

  /// K, one row a token.
  matrix_map<Scalar> key() const { return matrix(key_, tokens_, keys_); }
  /// Q, or X = Λ⁻¹q where the head has solved.
  matrix_map<Scalar> query() const { return matrix(query_, tokens_, keys_); }
  /// U, what each token writes.
  matrix_map<Scalar> written() const { return matrix(written_, tokens_, values_); }
  /// β, one row a token.
  matrix_map<Scalar> beta() const { return matrix(beta_, tokens_, values_); }
  /// α of token t, one or one a key.
  Scalar const* alpha(std::int64_t t) const { return alpha_ + t * gates_; }
  /// Tokens in the chunk.
  std::int64_t tokens() const { return tokens_; }

  /// x ⊙ the decay from the chunk's start to each token, that token's gate included.
  void decay_from_start(matrix_map<Scalar> x) const { scale_rows(x, from_start_); }
  /// x ⊙ the decay from each token, its own gate excluded, to the chunk's end.
  void decay_to_end(matrix_map<Scalar> x) const { scale_rows(x, to_end_); }
  /// A state [rows,K] ⊙ the decay of the whole chunk.
  void decay_whole(matrix_map<Scalar> state) const {
    Scalar const* const whole = from_start_ + (tokens_ - 1) * gates_;
    for (std::int64_t i = 0; i < state.rows(); ++i) scale_row(&state(i, 0), keys_, whole);
  }

  /// scores_ts = Σ_j left_tj right_sj Π_{s<r≤t} α_rj for s ≤ t, zero above. With one gate a token it is a product and a mask; with one
  /// a key, the products of α are walked key by key.
  void score(matrix_map<Scalar> left, matrix_map<Scalar> right, matrix_map<Scalar> scores) const {
    scores.setZero();
    if constexpr (per_key) {
      for (std::int64_t s = 0; s < tokens_; ++s) {
        for (std::int64_t j = 0; j < keys_; ++j) between_[j] = right(s, j);
        for (std::int64_t t = s; t < tokens_; ++t) {
          if (t > s)
            for (std::int64_t j = 0; j < keys_; ++j) between_[j] *= alpha_[t * keys_ + j];
          Scalar sum{};
          for (std::int64_t j = 0; j < keys_; ++j) sum += left(t, j) * between_[j];
          scores(t, s) = sum;
        }
      }
    } else {
      add_product(scores, left, right.transpose());
      for (std::int64_t t = 0; t < tokens_; ++t) {
        Scalar* __restrict const row = &scores(t, 0);
        Scalar const* __restrict const decay = between_ + t * tokens_;
        for (std::int64_t s = 0; s <= t; ++s) row[s] *= decay[s];
        std::fill(row + t + 1, row + tokens_, Scalar{});
      }
    }
  }

 private:
  /// Asks for a row of the next chunk while this one is at work: the tokens of a head lie rows apart, where no hardware looks ahead.
  template <class T>
  static void expect(T const* from, std::int64_t step, std::int64_t count) {
#if defined(__GNUC__)
    constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
    if (step == 1)
      for (std::int64_t i = 0; i < count; i += line) __builtin_prefetch(from + i);
#else
    static_cast<void>(from), static_cast<void>(step), static_cast<void>(count);
#endif
  }

  /// `count` elements, `step` apart, widened. Neighbours are a loop of their own, which compilers turn into vectors.
  template <class T>
  static void widen(T const* from, std::int64_t step, std::int64_t count, Scalar* __restrict into) {
    if (step == 1) {
      for (std::int64_t i = 0; i < count; ++i) into[i] = static_cast<Scalar>(storage<T>::load(from[i]));
    } else {
      for (std::int64_t i = 0; i < count; ++i) into[i] = static_cast<Scalar>(storage<T>::load(from[i * step]));
    }
  }

  void scale_rows(matrix_map<Scalar> x, Scalar const* decay) const {
    for (std::int64_t t = 0; t < x.rows(); ++t) scale_row(&x(t, 0), x.cols(), decay + t * gates_);
  }

  static void scale_row(Scalar* __restrict row, std::int64_t count, Scalar const* __restrict decay) {
    if constexpr (per_key) {
      for (std::int64_t j = 0; j < count; ++j) row[j] *= decay[j];
    } else {
      Scalar const one = decay[0];
      for (std::int64_t j = 0; j < count; ++j) row[j] *= one;
    }
  }

  /// Running products from the start, to the end and, with one gate a token, between any two: row t is row t-1 times α_t.
  void run_decays() {
    for (std::int64_t t = 0; t < tokens_; ++t)
      for (std::int64_t j = 0; j < gates_; ++j)
        from_start_[t * gates_ + j] = (t > 0 ? from_start_[(t - 1) * gates_ + j] : Scalar(1)) * alpha_[t * gates_ + j];
    for (std::int64_t t = tokens_ - 1; t >= 0; --t)
      for (std::int64_t j = 0; j < gates_; ++j)
        to_end_[t * gates_ + j] =
            t + 1 < tokens_ ? to_end_[(t + 1) * gates_ + j] * alpha_[(t + 1) * gates_ + j] : Scalar(1);
    if constexpr (!per_key) {
      for (std::int64_t t = 0; t < tokens_; ++t) {
        Scalar* __restrict const row = between_ + t * tokens_;
        Scalar const* __restrict const before = row - tokens_;
        Scalar const alpha = alpha_[t];
        for (std::int64_t s = 0; s < t; ++s) row[s] = before[s] * alpha;
        row[t] = 1;
      }
    }
  }

  std::int64_t keys_, values_, gates_, tokens_ = 0;
  Scalar *key_, *query_, *written_, *beta_, *alpha_, *from_start_, *to_end_, *between_;
};

}  // namespace palimpsa::cpu
