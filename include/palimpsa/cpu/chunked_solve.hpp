#pragma once
/// @file
/// The solves of a full memory, x_t = Λ_t⁻¹ q_t, for as many tokens abreast as a vector register has doubles: lane l of a pack is
/// token l of a group.
///
///     Λ_l = diag(prior) + A_l J + Σ_{m≤l} G_lm k_m k_mᵀ        A_l = Π_{m≤l} α_m,  G_lm = β_m Π_{m<r≤l} α_r,  J before the group
///     Λ = L D Lᵀ,  L unit lower triangular: no square roots, one reciprocal a pivot
///
/// Rows come in panels of four, kept column by column, so that four rows against four rows are 16 products for eight loads.
/// In double whatever the type of the arithmetic, as in solve.hpp.

#include <cmath>
#include <cstdint>
#include <utility>

#include "palimpsa/cpu/ranges.hpp"
#include "palimpsa/cpu/chunked_tokens.hpp"
#include "palimpsa/cpu/solve.hpp"
#include "palimpsa/detail/config.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Turns the queries of a chunk into x = Λ⁻¹q.
template <class Rule, class Storage, class Scalar>
class chunk_solver {
 public:
  using lanes = native_pack<double>;  ///< the tokens of a group

  /// Takes its scratch; counts only if the arena does.
  chunk_solver(arena& memory, std::int64_t keys)
      : keys_(keys),
        panels_((keys + 3) / 4),
        evidence_(memory.take<double>(panel_start(panels_))),
        next_(memory.take<double>(panel_start(panels_))),
        factor_(memory.take<lanes>(panel_start(panels_))),
        row_(memory.take<lanes>(16 * panels_)),
        inverse_(memory.take<lanes>(4 * panels_)),
        solution_(memory.take<lanes>(4 * panels_)),
        key_(memory.take<double>(lanes::size * 4 * panels_)) {
    alone_.take(memory, keys);
  }

  /// Queries of the chunk ← Λ_t⁻¹ q_t, scaled by a power of two as queries are; variance_t ← q_tᵀ Λ_t⁻¹ q_t. `state` is at the chunk's
  /// start.
  void solve(chunk_tokens<Rule, Storage, Scalar> const& chunk, chunk_state<Scalar> state, plane<Scalar const> prior, double* variance) {
    for (std::int64_t p = 0; p < panels_; ++p)
      each_cell(p, [&](std::int64_t cell, std::int64_t i, std::int64_t j) {
        evidence_[cell] = i < keys_ && j < keys_ ? static_cast<double>(i >= j ? state.evidence(i, j) : state.evidence(j, i)) : 0;
      });
    std::int64_t group = 0;
    for (std::int64_t first = 0; first < chunk.count; first += group) {
      group = group_at(chunk, first);
      weigh(chunk, first, group);
      assemble(group, prior);
      if (factorise(prior))
        substitute(chunk, first, group, variance);
      else
        solve_alone(chunk, first, group, prior, variance);
      std::swap(evidence_, next_);
    }
  }

 private:
  /// Cells of the panels before panel p, which has four rows and 4(p + 1) columns.
  static constexpr std::int64_t panel_start(std::int64_t p) { return 8 * p * (p + 1); }
  static constexpr std::int64_t cell_of(std::int64_t i, std::int64_t j) { return panel_start(i / 4) + 4 * j + i % 4; }

  /// f(cell, row, column) for every cell of a panel.
  template <class F>
  static void each_cell(std::int64_t p, F f) {
    for (std::int64_t j = 0; j < 4 * (p + 1); ++j)
      for (std::int64_t r = 0; r < 4; ++r) f(panel_start(p) + 4 * j + r, 4 * p + r, j);
  }

  /// Tokens of the next group. Its lanes see each other's keys, with weight 0 where they come later: a token that is not finite starts a
  /// group of its own, so that no earlier one meets 0·NaN.
  static std::int64_t group_at(chunk_tokens<Rule, Storage, Scalar> const& chunk, std::int64_t first) {
    std::int64_t n = 1;
    for (; n < lanes::size && first + n < chunk.count; ++n) {
      Scalar zero = 0 * chunk.strength[first + n];
      for (std::int64_t j = 0; j < chunk.keys; ++j) zero += 0 * chunk.key(first + n, j);
      if (zero != 0) break;
    }
    return n;
  }

  /// A and G, and the keys in double. Lanes past the last token repeat it.
  void weigh(chunk_tokens<Rule, Storage, Scalar> const& chunk, std::int64_t first, std::int64_t group) {
    for (std::int64_t m = 0; m < group; ++m)
      for (std::int64_t j = 0; j < 4 * panels_; ++j)
        key_[m * 4 * panels_ + j] = j < keys_ ? static_cast<double>(chunk.key(first + m, j)) : 0;
    for (int l = 0; l < lanes::size; ++l) {
      double const alpha = l < group ? chunk.alpha(first + l, 0) : 1;
      kept_.set(l, alpha * (l > 0 ? kept_[l - 1] : 1));
      for (int m = 0; m < lanes::size; ++m) {
        double const before = l > 0 ? weight_[m][l - 1] : 0;
        weight_[m].set(l, m < l ? alpha * before : m == l && l < group ? static_cast<double>(chunk.strength[first + m]) : 0);
      }
    }
  }

  /// The matrices of the group. Rows past K are those of the identity.
  void assemble(std::int64_t group, plane<Scalar const> prior) {
    for (std::int64_t p = 0; p < panels_; ++p)
      for (std::int64_t j = 0; j < 4 * (p + 1); ++j) {
        std::int64_t const cell = panel_start(p) + 4 * j;
        lanes sum[4];
        for (int r = 0; r < 4; ++r) sum[r] = kept_ * evidence_[cell + r];
        for (std::int64_t m = 0; m < group; ++m) {
          double const* const k = key_ + m * 4 * panels_;
          lanes const weighted = weight_[m] * k[j];
          for (int r = 0; r < 4; ++r) sum[r] = sum[r] + weighted * k[4 * p + r];
        }
        for (int r = 0; r < 4; ++r) {
          next_[cell + r] = sum[r][lanes::size - 1];
          factor_[cell + r] = sum[r];
        }
      }
    for (std::int64_t i = 0; i < 4 * panels_; ++i)
      factor_[cell_of(i, i)] = factor_[cell_of(i, i)] + (i < keys_ ? static_cast<double>(prior(0, i)) : 1);
  }

  /// tile ← tile - row[.., 0..depth) (panel's rows)ᵀ: 4×4 rows.
  static void subtract_rows(lanes (&tile)[4][4], lanes const* row, lanes const* panel, std::int64_t depth) {
    for (std::int64_t k = 0; k < depth; ++k)
      for (int c = 0; c < 4; ++c) {
        lanes const l = panel[4 * k + c];
        for (int r = 0; r < 4; ++r) tile[r][c] = tile[r][c] - row[4 * k + r] * l;
      }
  }

  /// Λ ← L, 1/D aside. False if a pivot is below its prior, which is its bound where J is positive semidefinite.
  bool factorise(plane<Scalar const> prior) {
    bool sound = true;
    for (std::int64_t p = 0; p < panels_; ++p) {
      lanes* const panel = factor_ + panel_start(p);
      for (std::int64_t q = 0; q <= p; ++q) {  // row_ = L D, four columns at a time
        lanes const* const left = factor_ + panel_start(q);
        lanes tile[4][4];
        for (int r = 0; r < 4; ++r)
          for (int c = 0; c < 4; ++c) tile[r][c] = panel[4 * (4 * q + c) + r];
        subtract_rows(tile, row_, left, 4 * q);
        for (int c = 0; c < 4; ++c) {
          lanes const* const known = left + 16 * q;  // L of the diagonal block; its own when q = p
          for (int r = q == p ? c : 0; r < 4; ++r) {
            for (int b = 0; b < c; ++b) tile[r][c] = tile[r][c] - tile[r][b] * known[4 * b + c];
          }
          if (q == p) {
            inverse_[4 * p + c] = 1.0 / tile[c][c];
            sound = sound && above(tile[c][c], 4 * p + c < keys_ ? static_cast<double>(prior(0, 4 * p + c)) : 1);
          }
          for (int r = 0; r < 4; ++r) {
            row_[4 * (4 * q + c) + r] = tile[r][c];
            panel[4 * (4 * q + c) + r] = tile[r][c] * inverse_[4 * q + c];
          }
        }
      }
    }
    return sound;
  }

  /// Whether a pivot is at least its prior, to the rounding of double. A NaN is not singular: it stays what it is.
  static bool above(lanes pivot, double prior) {
    bool all = true;
    for (int l = 0; l < lanes::size; ++l) all = all && !(pivot[l] < prior * (1 - 1e-13));
    return all;
  }

  /// L D Lᵀ x = q.
  void substitute(chunk_tokens<Rule, Storage, Scalar> const& chunk, std::int64_t first, std::int64_t group, double* variance) {
    for (std::int64_t i = 0; i < 4 * panels_; ++i) {
      lanes q{};
      for (std::int64_t l = 0; i < keys_ && l < group; ++l) q.set(static_cast<int>(l), static_cast<double>(chunk.query(first + l, i)));
      row_[i] = solution_[i] = q;
    }
    for (std::int64_t p = 0; p < panels_; ++p) {
      lanes const* const panel = factor_ + panel_start(p);
      lanes* const x = solution_ + 4 * p;
      lanes sum[4] = {x[0], x[1], x[2], x[3]};
      for (std::int64_t k = 0; k < 4 * p; ++k)
        for (int r = 0; r < 4; ++r) sum[r] = sum[r] - panel[4 * k + r] * solution_[k];
      for (int r = 0; r < 4; ++r) {
        for (int b = 0; b < r; ++b) sum[r] = sum[r] - panel[16 * p + 4 * b + r] * sum[b];
        x[r] = sum[r];
      }
    }
    for (std::int64_t i = 0; i < 4 * panels_; ++i) solution_[i] = solution_[i] * inverse_[i];
    for (std::int64_t p = panels_ - 1; p >= 0; --p) {
      lanes const* const panel = factor_ + panel_start(p);
      lanes* const x = solution_ + 4 * p;
      for (int r = 2; r >= 0; --r)
        for (int b = r + 1; b < 4; ++b) x[r] = x[r] - panel[16 * p + 4 * r + b] * x[b];
      lanes const known[4] = {x[0], x[1], x[2], x[3]};
      for (std::int64_t k = 0; k < 4 * p; ++k)
        solution_[k] = solution_[k] - ((panel[4 * k] * known[0] + panel[4 * k + 1] * known[1]) +
                                       (panel[4 * k + 2] * known[2] + panel[4 * k + 3] * known[3]));
    }
    lanes sum{};
    for (std::int64_t i = 0; i < keys_; ++i) sum = sum + solution_[i] * row_[i];
    for (std::int64_t l = 0; l < group; ++l)
      answer(chunk, first + l, sum[static_cast<int>(l)], variance, [&](std::int64_t i) { return solution_[i][static_cast<int>(l)]; });
  }

  /// Query t ← x_i = x(i), and its variance, qᵀx in the units of the caller. Rounded to the arithmetic after scaling: x is in the range of
  /// doubles.
  template <class X>
  void answer(chunk_tokens<Rule, Storage, Scalar> const& chunk, std::int64_t t, double sum, double* variance, X x) const {
    double most = 0;
    for (std::int64_t i = 0; i < keys_; ++i) most = std::fabs(x(i)) > most ? std::fabs(x(i)) : most;
    double const power = power_of<double>(most);
    for (std::int64_t i = 0; i < keys_; ++i) chunk.query(t, i) = static_cast<Scalar>(x(i) / power);
    variance[t] = sum * chunk.lift[t] * chunk.lift[t];
    chunk.lift[t] *= power;
  }

  /// Where a system is singular to the rounding of J, its group goes token by token: solve.hpp knows what to do.
  void solve_alone(chunk_tokens<Rule, Storage, Scalar> const& chunk, std::int64_t first, std::int64_t group, plane<Scalar const> prior,
                   double* variance) {
    for (std::int64_t i = 0; i < keys_; ++i)
      for (std::int64_t j = 0; j < keys_; ++j)
        alone_.evidence[i * keys_ + j] = static_cast<Scalar>(evidence_[i >= j ? cell_of(i, j) : cell_of(j, i)]);
    for (std::int64_t t = first; t < first + group; ++t) {
      Scalar* const query = chunk.query.row(t);
      alone_.observe(chunk.key.row(t), static_cast<Scalar>(chunk.alpha(t, 0)), chunk.strength[t]);
      alone_.factorise(prior);
      alone_.solve(query);
      double sum = 0;
      for (std::int64_t j = 0; j < keys_; ++j) sum += alone_.solution[j] * static_cast<double>(query[j]);
      answer(chunk, t, sum, variance, [this](std::int64_t i) { return alone_.solution[i]; });
    }
  }

  std::int64_t keys_, panels_;
  double *evidence_, *next_;  // J before and after the group, lower triangle in panels
  lanes *factor_, *row_, *inverse_, *solution_;
  double* key_;  // keys of the group, padded to whole panels
  lanes kept_{}, weight_[lanes::size]{};
  precision_matrix<Scalar> alone_;
};

}  // namespace palimpsa::cpu
