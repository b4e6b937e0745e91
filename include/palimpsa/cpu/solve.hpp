#pragma once
/// @file
/// The head stage of a full memory: J ← αJ + β k kᵀ and x = (diag(prior) + J)⁻¹ q, by Cholesky in double whatever the type of the
/// arithmetic, so that the error of a read is that of J itself times the condition of the system.

#include <cmath>
#include <cstdint>
#include <limits>

#include "palimpsa/cpu/head.hpp"
#include "palimpsa/cpu/ranges.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/fused.hpp"
#include "palimpsa/lanes.hpp"
#include "palimpsa/validate.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// Λ = L Lᵀ in place, in the lower triangle of a column-major n×n matrix. False, half done, if a pivot j is below floor(j).
///
/// Panels of four columns: each update of the rest loads and stores it once for four products (with AVX-512, K = 64: 9.7 µs against
/// 12.8 by Eigen's LLT, K = 256: 158 against 541). Allocates nothing.
template <class Floor>
bool cholesky(double* matrix, std::int64_t n, Floor floor) {
  for (std::int64_t first = 0; first < n; first += 4) {
    std::int64_t const end = first + 4 < n ? first + 4 : n;
    for (std::int64_t j = first; j < end; ++j) {
      double* __restrict const column = matrix + j * n;
      for (std::int64_t l = first; l < j; ++l) {
        double const* const before = matrix + l * n;
        double const factor = before[j];
        for (std::int64_t i = j; i < n; ++i) column[i] = fused(-factor, before[i], column[i]);
      }
      if (column[j] < floor(j)) return false;
      column[j] = std::sqrt(column[j]);
      double const inverse = 1 / column[j];
      for (std::int64_t i = j + 1; i < n; ++i) column[i] *= inverse;
    }
    if (end < first + 4) return true;
    double const *const a = matrix + first * n, *const b = a + n, *const c = b + n, *const d = c + n;
    for (std::int64_t j = end; j < n; ++j) {
      double* __restrict const column = matrix + j * n;
      double const fa = a[j], fb = b[j], fc = c[j], fd = d[j];
      for (std::int64_t i = j; i < n; ++i) column[i] -= fused(fa, a[i], fb * b[i]) + fused(fc, c[i], fd * d[i]);
    }
  }
  return true;
}

/// The K×K evidence of a head and the scratch for its solves.
template <class Scalar>
struct precision_matrix {
  std::int64_t keys = 0;       ///< K
  Scalar* evidence = nullptr;  ///< J, K×K row-major, symmetric positive semidefinite
  double* factor = nullptr;    ///< K×K scratch of the factorisation
  double* solution = nullptr;  ///< K, x after solve()

  /// Takes its arrays from the arena.
  void take(arena& memory, std::int64_t K) {
    keys = K;
    evidence = memory.take<Scalar>(K * K);
    factor = memory.take<double>(K * K);
    solution = memory.take<double>(K);
  }

  /// J from the caller's state; zeros if it is absent.
  void load(plane<Scalar const> state) {
    for (std::int64_t i = 0; i < keys; ++i)
      for (std::int64_t j = 0; j < keys; ++j) evidence[i * keys + j] = state.present() ? state(i, j) : Scalar{};
  }

  /// J to the caller's state.
  void store(plane<Scalar> state) const {
    for (std::int64_t i = 0; i < keys; ++i)
      for (std::int64_t j = 0; j < keys; ++j) state(i, j) = evidence[i * keys + j];
  }

  /// J ← αJ + β k kᵀ, as β̂ k̂ k̂ᵀ (ranges.hpp): k_i k_j alone may leave the range that β k_i k_j is in.
  void observe(Scalar const* key, Scalar alpha, Scalar beta) {
    Scalar most = 0, scaled[max_channels];
    for (std::int64_t j = 0; j < keys; ++j) most = std::fabs(key[j]) > most ? std::fabs(key[j]) : most;
    double const power = power_of<Scalar>(static_cast<double>(most));
    auto const weight = static_cast<Scalar>(static_cast<double>(beta) * power * power), inverse = static_cast<Scalar>(1 / power);
    for (std::int64_t j = 0; j < keys; ++j) scaled[j] = key[j] * inverse;
    for (std::int64_t i = 0; i < keys; ++i) {
      Scalar* const row = evidence + i * keys;
      for (std::int64_t j = 0; j < keys; ++j) row[j] = fused(weight, scaled[i] * scaled[j], alpha * row[j]);
    }
  }

  /// Factors Λ = diag(prior) + J.
  ///
  /// No pivot is below its prior if J is positive semidefinite. Where one is, Λ is singular to the rounding of J (condition above
  /// 1/ε) and the right solution is lost. The diagonal is then raised by ε|Λ_jj|, 4ε|Λ_jj|, ..., and the floor with it, until the
  /// factorisation goes through, so that what comes out is finite and of about the right size. A J that is negative beyond
  /// rounding answers with NaN.
  void factorise(plane<Scalar const> prior) {
    double raise = 0;
    auto const floor = [&](std::int64_t j) { return fused(raise, std::fabs(precision(prior, j)), static_cast<double>(prior(0, j))); };
    for (assemble(prior, raise); !cholesky(factor, keys, floor); assemble(prior, raise)) {
      raise = raise > 0 ? 4 * raise : static_cast<double>(std::numeric_limits<Scalar>::epsilon());
      if (raise > 1) raise = std::numeric_limits<double>::quiet_NaN();
    }
  }

  /// solution ← Λ⁻¹ b, after factorise().
  template <class T>
  void solve(T const* b) {
    for (std::int64_t j = 0; j < keys; ++j) solution[j] = static_cast<double>(b[j]);
    for (std::int64_t j = 0; j < keys; ++j) {
      double const* const column = factor + j * keys;
      double const x = solution[j] /= column[j];
      for (std::int64_t i = j + 1; i < keys; ++i) solution[i] = fused(-x, column[i], solution[i]);
    }
    for (std::int64_t j = keys - 1; j >= 0; --j) {
      double const *const column = factor + j * keys + j + 1, *const known = solution + j + 1;
      serial_lanes const rest{static_cast<int>(keys - j - 1)};
      solution[j] = (solution[j] - rest.sum<double>([=](int i, double s) { return fused(column[i], known[i], s); })) / column[-1];
    }
  }

 private:
  /// Λ_jj.
  double precision(plane<Scalar const> prior, std::int64_t j) const {
    return static_cast<double>(prior(0, j)) + static_cast<double>(evidence[j * keys + j]);
  }

  void assemble(plane<Scalar const> prior, double raise) {
    for (std::int64_t i = 0; i < keys * keys; ++i) factor[i] = static_cast<double>(evidence[i]);
    for (std::int64_t j = 0; j < keys; ++j) {
      double const x = precision(prior, j);
      factor[j * keys + j] = fused(raise, std::fabs(x), x);
    }
  }
};

}  // namespace palimpsa::cpu
