#pragma once
/// @file
/// An estimate of the condition of the linear systems a case poses, in double, for the bounds of its tensors:
///
///     MesaNet       Λ_t = diag(prior) + J_t,  J_t = α_t J_{t-1} + β_t k_t k_tᵀ       a system for every token
///     DeltaNets     I + L,  L_ij = g_i (k_i · k_j α_{j+1} ... α_i) for j < i         a system for every chunk
///
/// Both are 2-norm conditions, the largest over tokens or chunks, heads and sequences: the norm of the matrix times that
/// of its inverse, each by power iteration, on Λ and its Cholesky factor, or on AᵀA and two triangular solves. Power
/// iteration approaches a norm from below, so the bound is tighter, never looser (by less than half over the tests,
/// which compare with singular values). Where all systems would be more work than running the case a subset is taken,
/// evenly spread, the last of each sequence included.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/case_data.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {
namespace detail {

inline double dot(std::span<double const> a, std::span<double const> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// A square matrix of doubles, row-major.
struct square {
  std::size_t n;
  std::vector<double> cells;

  explicit square(std::size_t size) : n(size), cells(size * size) {}
  double& operator()(std::size_t i, std::size_t j) { return cells[i * n + j]; }
  double operator()(std::size_t i, std::size_t j) const { return cells[i * n + j]; }
  std::span<double const> row(std::size_t i) const { return {cells.data() + i * n, n}; }
};

inline bool all_finite(std::span<double const> values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

/// x <- A x by another vector.
inline void multiply(square const& a, std::vector<double>& x) {
  std::vector<double> const from = x;
  for (std::size_t i = 0; i < a.n; ++i) x[i] = dot(a.row(i), from);
}

/// x <- Aᵀ x by another vector, row by row of A.
inline void multiply_transposed(square const& a, std::vector<double>& x) {
  std::vector<double> const from = x;
  std::fill(x.begin(), x.end(), 0.0);
  for (std::size_t i = 0; i < a.n; ++i)
    for (std::size_t j = 0; j < a.n; ++j) x[j] += a(i, j) * from[i];
}

/// x <- L⁻¹ x for the lower triangle of a matrix.
inline void solve_lower(square const& l, std::vector<double>& x) {
  for (std::size_t i = 0; i < l.n; ++i) x[i] = (x[i] - dot(l.row(i).first(i), std::span(x).first(i))) / l(i, i);
}

/// x <- L⁻ᵀ x, row by row of L.
inline void solve_lower_transposed(square const& l, std::vector<double>& x) {
  for (std::size_t i = l.n; i-- > 0;) {
    x[i] /= l(i, i);
    for (std::size_t j = 0; j < i; ++j) x[j] -= l(i, j) * x[i];
  }
}

/// Λ = L Lᵀ in place, in the lower triangle. @return whether Λ is positive definite
inline bool cholesky(square& a) {
  for (std::size_t i = 0; i < a.n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double const rest = a(i, j) - dot(a.row(i).first(j), a.row(j).first(j));
      if (i == j && !(rest > 0)) return false;
      a(i, j) = i == j ? std::sqrt(rest) : rest / a(j, j);
    }
  }
  return true;
}

/// The largest eigenvalue of a symmetric positive map x <- M x, from below. Where others lie near the largest they serve as
/// well: 12 steps from a vector that has part in all come within a half.
template <class Apply> double largest_eigenvalue(std::size_t n, Apply apply) {
  std::vector<double> x(n);
  std::uint32_t state = 1;  // a fixed sequence without a pattern: no case is orthogonal to it by construction
  for (double& element : x) {
    state = state * 1664525u + 1013904223u;
    element = 0.5 + static_cast<double>(state >> 8) * 0x1p-24;
    if ((state & 0x80000000u) != 0) element = -element;
  }
  double value = 0;
  for (int step = 0; step < 12; ++step) {
    double const length = std::sqrt(dot(x, x));
    if (!(length > 0) || !std::isfinite(length)) return length;
    for (double& element : x) element /= length;
    std::vector<double> const before = x;
    apply(x);
    value = dot(before, x);
  }
  return value;
}

/// A case as one head of one sequence sees it. The library has accepted its shapes.
struct head_reader {
  case_file const& given;  // NOLINT: lives shorter than the case
  std::int64_t value_heads, key_heads, keys, head;

  head_reader(case_file const& given_case, std::int64_t which)
      : given(given_case),
        value_heads(given_case.v->shape[2]),
        key_heads(given_case.q->shape[2]),
        keys(given_case.q->shape[3]),
        head(which) {}

  static double at(case_tensor<double> const& x, std::int64_t i) { return x.values[static_cast<std::size_t>(i)]; }

  /// k of a token; tokens of all batch rows are numbered through.
  std::span<double const> key(std::int64_t token) const {
    std::int64_t const place = (token * key_heads + head / (value_heads / key_heads)) * keys;
    return {given.k->values.data() + place, static_cast<std::size_t>(keys)};
  }
  /// β; 1 where it is absent. One a head: neither system is posed otherwise.
  double beta(std::int64_t token) const { return given.beta ? at(*given.beta, token * value_heads + head) : 1; }
  /// log_decay, for a key channel where there is one each; 0 where it is absent.
  double log_decay(std::int64_t token, std::int64_t channel) const {
    if (!given.log_decay) return 0;
    std::int64_t const place = token * value_heads + head;
    return at(*given.log_decay, given.log_decay->shape.size() > 3 ? place * keys + channel : place);
  }
  double prior(std::int64_t channel) const {
    return at(*given.prior, given.prior->shape.size() > 1 ? head * keys + channel : head);
  }
};

/// Where a sequence lies among the tokens of all batch rows.
struct token_range {
  std::int64_t first, last;
};

inline std::vector<token_range> sequences_of(case_file const& given) {
  std::vector<token_range> all;
  std::int64_t const batch = given.q->shape[0], tokens = given.q->shape[1];
  if (!given.cu_seqlens) {
    for (std::int64_t n = 0; n < batch; ++n) all.push_back({n * tokens, (n + 1) * tokens});
  } else {
    auto const& ends = given.cu_seqlens->values;
    for (std::size_t n = 1; n < ends.size(); ++n) all.push_back({ends[n - 1], ends[n]});
  }
  return all;
}

/// A step so that at most `affordable` of `count` things are looked at.
inline std::int64_t step_for(std::int64_t count, double affordable) {
  return (std::max)(std::int64_t{1}, static_cast<std::int64_t>(std::ceil(static_cast<double>(count) / affordable)));
}

inline constexpr double affordable_work = 1e10;  // multiplications: some seconds

/// cond Λ of a symmetric matrix that ought to be positive definite, which is lost.
inline double definite_condition(square& precision) {
  double const largest = largest_eigenvalue(precision.n, [&](auto& x) { multiply(precision, x); });
  if (!cholesky(precision)) return std::numeric_limits<double>::infinity();
  double const inverse = largest_eigenvalue(precision.n, [&](auto& x) {
    solve_lower(precision, x);
    solve_lower_transposed(precision, x);
  });
  return (std::max)(1.0, largest * inverse);
}

/// cond A of a lower triangle with ones on its diagonal.
inline double triangle_condition(square const& a) {
  double const largest = largest_eigenvalue(a.n, [&](auto& x) {
    multiply(a, x);
    multiply_transposed(a, x);
  });
  double const inverse = largest_eigenvalue(a.n, [&](auto& x) {
    solve_lower_transposed(a, x);
    solve_lower(a, x);
  });
  double const condition = std::sqrt(largest) * std::sqrt(inverse);
  return std::isnan(condition) ? std::numeric_limits<double>::infinity() : (std::max)(1.0, condition);
}

/// max cond Λ_t over one head of one sequence; a token in `step`, counted from the last, is looked at.
inline double precision_condition(head_reader const& x, std::size_t sequence, token_range where, std::int64_t step) {
  auto const K = static_cast<std::size_t>(x.keys);
  square J(K);
  if (x.given.initial_evidence) {
    auto const place = (static_cast<std::ptrdiff_t>(sequence) * x.value_heads + x.head) * x.keys * x.keys;
    std::copy_n(x.given.initial_evidence->values.begin() + place, J.cells.size(), J.cells.begin());
  }
  double worst = 0;
  for (std::int64_t t = where.first; t < where.last; ++t) {
    double const kept = std::exp(x.log_decay(t, 0)), beta = x.beta(t);
    auto const k = x.key(t);
    for (std::size_t i = 0; i < K; ++i)
      for (std::size_t j = 0; j < K; ++j) J(i, j) = kept * J(i, j) + beta * k[i] * k[j];
    if ((where.last - 1 - t) % step != 0) continue;
    square precision = J;
    for (std::size_t i = 0; i < K; ++i) precision(i, i) += x.prior(static_cast<std::int64_t>(i));
    if (all_finite(precision.cells)) worst = (std::max)(worst, definite_condition(precision));
  }
  return worst;
}

/// cond(I + L) of tokens [first, last) of one head.
inline double triangle_condition(head_reader const& x, token_range where, bool exact_gain) {
  auto const n = static_cast<std::size_t>(where.last - where.first), K = static_cast<std::size_t>(x.keys);
  square system(n);
  std::vector<double> kept(n * K);  // α of a token and channel
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < K; ++c)
      kept[i * K + c] = std::exp(x.log_decay(where.first + static_cast<std::int64_t>(i), static_cast<std::int64_t>(c)));
  for (std::size_t j = 0; j < n; ++j) {
    auto const k = x.key(where.first + static_cast<std::int64_t>(j));
    std::vector<double> decayed(k.begin(), k.end());  // k_j α_{j+1} ... α_i
    system(j, j) = 1;
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t c = 0; c < K; ++c) decayed[c] *= kept[i * K + c];
      auto const token = where.first + static_cast<std::int64_t>(i);
      auto const key = x.key(token);
      double const gain = exact_gain ? x.beta(token) / (1 + x.beta(token) * dot(key, key)) : x.beta(token);
      system(i, j) = gain * dot(key, decayed);
    }
  }
  return all_finite(system.cells) ? triangle_condition(system) : 0;
}

}  // namespace detail

/// The largest condition, estimated, of diag(prior) + J over tokens, heads and sequences of a MesaNet case; 0 without tokens.
inline double precision_condition(case_file const& given) {
  auto const sequences = detail::sequences_of(given);
  std::int64_t const heads = given.v->shape[2], K = given.q->shape[3];
  std::int64_t const count = given.q->shape[0] * given.q->shape[1] * heads;
  auto const cost = 2.0 * static_cast<double>(K * K * K);
  std::int64_t const step = detail::step_for(count, detail::affordable_work / cost);
  double worst = 0;
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    for (std::int64_t h = 0; h < heads; ++h) {
      worst = (std::max)(worst, detail::precision_condition({given, h}, n, sequences[n], step));
    }
  }
  return worst;
}

/// The largest condition, estimated, of a chunk's unit-triangular system over chunks, heads and sequences of a DeltaNet case; 0
/// without tokens. @param chunk tokens a chunk, counted from the start of a sequence, >= 1
inline double triangle_condition(case_file const& given, bool exact_gain, std::int64_t chunk) {
  auto const sequences = detail::sequences_of(given);
  std::int64_t const heads = given.v->shape[2], tokens = given.q->shape[0] * given.q->shape[1];
  std::int64_t const length = (std::max)(std::int64_t{1}, (std::min)(chunk, tokens));
  auto const size = static_cast<double>(length);
  auto const cost = size * size * (8 * size + 20.0 * static_cast<double>(given.q->shape[3]));
  std::int64_t const chunks = tokens / length + static_cast<std::int64_t>(sequences.size());
  std::int64_t const step = detail::step_for(chunks * heads, detail::affordable_work / cost);
  double worst = 0;
  for (auto const& sequence : sequences) {
    std::int64_t const last = (sequence.last - sequence.first - 1) / length;
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t c = last % step; sequence.first + c * length < sequence.last; c += step) {
        std::int64_t const first = sequence.first + c * length;
        detail::token_range const where{first, (std::min)(first + length, sequence.last)};
        worst = (std::max)(worst, detail::triangle_condition({given, h}, where, exact_gain));
      }
    }
  }
  return worst;
}

}  // namespace palimpsa::io
