#pragma once
/// @file
/// The head stage of a full memory: J ← αJ + β k kᵀ and x = (diag(prior) + J)⁻¹ q, by Cholesky in double whatever the type of the
/// arithmetic, so that the error of a read is that of J itself times the condition of the system.

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cstdint>

#include "palimpsa/cpu/head.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::cpu {

/// The K×K evidence of a head and the scratch for its solves.
template <class Scalar>
struct precision_matrix {
  std::int64_t keys = 0;       ///< K
  Scalar* evidence = nullptr;  ///< J, K×K row-major
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

  /// J ← αJ + β k kᵀ.
  void observe(Scalar const* key, Scalar alpha, Scalar beta) {
    for (std::int64_t i = 0; i < keys; ++i) {
      Scalar* const row = evidence + i * keys;
      for (std::int64_t j = 0; j < keys; ++j) row[j] = alpha * row[j] + beta * (key[i] * key[j]);
    }
  }

  /// Factors Λ = diag(prior) + J.
  void factorise(plane<Scalar const> prior) {
    for (std::int64_t i = 0; i < keys; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) factor[i * keys + j] = static_cast<double>(evidence[i * keys + j]);
      factor[i * keys + i] += static_cast<double>(prior(0, i));
    }
    Eigen::Map<Eigen::MatrixXd> lambda(factor, keys, keys);
    Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>, Eigen::Lower> decomposition(lambda);
  }

  /// solution ← Λ⁻¹ b, after factorise().
  template <class T>
  void solve(T const* b) {
    Eigen::Map<Eigen::MatrixXd const> lower(factor, keys, keys);
    Eigen::Map<Eigen::VectorXd> x(solution, keys);
    for (std::int64_t j = 0; j < keys; ++j) solution[j] = static_cast<double>(b[j]);
    lower.triangularView<Eigen::Lower>().solveInPlace(x);
    lower.triangularView<Eigen::Lower>().adjoint().solveInPlace(x);
  }
};

}  // namespace palimpsa::cpu
