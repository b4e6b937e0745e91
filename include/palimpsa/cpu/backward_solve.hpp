#pragma once
/// @file
/// The head stage of a full memory, in reverse:
///
///     forward  J' = αJ + β k kᵀ,  Λ = diag(prior) + J',  x = Λ⁻¹q        rows read o = scale · η'x and give dx = scale · η'ᵀ do
///     reverse  dq = Λ⁻¹dx        dJ' -= (dq xᵀ + x dqᵀ)/2,  dprior += the diagonal of the same
///              dβ += kᵀ dJ' k    dk += 2 β dJ' k    dα += ⟨dJ', J⟩    dJ = α dJ'
///
/// All in double, as the solves are; dJ is kept symmetric.

#include <cstdint>

#include "palimpsa/cpu/head.hpp"
#include "palimpsa/cpu/solve.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/fused.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// The reverse of precision_matrix over a chunk of tokens. Keeps J before every token of the chunk, and the factor of every Λ:
/// to factorise twice would double the time, of which it is by far the most.
class precision_adjoint {
 public:
  /// What one token adds to its head's sums.
  struct token_cotangent {
    double alpha;  ///< ⟨dJ', J⟩
    double beta;   ///< kᵀ dJ' k
  };

  /// Takes its arrays from the arena.
  void take(arena& memory, std::int64_t K, std::int64_t chunk) {
    size_ = K * K;
    precision_.keys = K;
    evidence_ = memory.take<double>((chunk + 1) * size_);
    factors_ = memory.take<double>(chunk * size_);
    solutions_ = memory.take<double>(chunk * K);
    image_ = memory.take<double>(K);
    pulled_ = memory.take<double>(K);
    prior_ = memory.take<double>(K);
  }

  /// J before the chunk, and the head's prior.
  template <class Scalar>
  void begin(double const* evidence, plane<Scalar const> prior) {
    for (std::int64_t i = 0; i < size_; ++i) evidence_[i] = evidence[i];
    for (std::int64_t j = 0; j < precision_.keys; ++j) prior_[j] = static_cast<double>(prior(0, j));
  }

  /// Takes in token t of the chunk, in order: J', and x = Λ⁻¹q over q.
  void observe(std::int64_t t, double const* key, double alpha, double beta, double* query) {
    double const* const before = evidence_ + t * size_;
    precision_.evidence = evidence_ + (t + 1) * size_;
    for (std::int64_t i = 0; i < size_; ++i) precision_.evidence[i] = before[i];
    precision_.observe(key, alpha, beta);
    precision_.factor = factors_ + t * size_;
    precision_.solution = solutions_ + t * precision_.keys;
    precision_.factorise(plane<double const>{prior_, 0, 1});
    precision_.solve(query);
    for (std::int64_t j = 0; j < precision_.keys; ++j) query[j] = precision_.solution[j];
  }

  /// Takes token t back, in reverse order: dJ' in, dJ out. Adds to d_query and d_key [K], and -diag(dq xᵀ) to d_prior [K].
  token_cotangent reverse(std::int64_t t, double const* key, double alpha, double beta, double const* d_x, double* d_evidence,
                          double* d_query, double* d_key, double* d_prior) {
    std::int64_t const K = precision_.keys;
    double const* const x = solutions_ + t * K;
    precision_.factor = factors_ + t * size_;
    precision_.solution = image_;
    precision_.solve(d_x);
    for (std::int64_t j = 0; j < K; ++j) {
      d_query[j] += image_[j];
      d_prior[j] = fused(-image_[j], x[j], d_prior[j]);
      pulled_[j] = 0;
    }
    // dJ' is symmetric: dJ' k is a sum over rows as well, which runs along memory.
    for (std::int64_t i = 0; i < K; ++i) {
      double* const row = d_evidence + i * K;
      double const half_y = 0.5 * image_[i], half_x = 0.5 * x[i], k = key[i];
      for (std::int64_t j = 0; j < K; ++j) {
        row[j] -= fused(half_y, x[j], half_x * image_[j]);
        pulled_[j] = fused(k, row[j], pulled_[j]);
      }
    }
    token_cotangent sums{0, 0};
    double const* const before = evidence_ + t * size_;
    for (std::int64_t i = 0; i < K; ++i) {
      sums.alpha += inner_product(d_evidence + i * K, before + i * K, K);
      sums.beta = fused(key[i], pulled_[i], sums.beta);
      d_key[i] = fused(2 * beta, pulled_[i], d_key[i]);
    }
    for (std::int64_t i = 0; i < size_; ++i) d_evidence[i] *= alpha;
    return sums;
  }

 private:
  /// Eight running sums: their order depends on n alone.
  static double inner_product(double const* a, double const* b, std::int64_t n) {
    double sums[8] = {};
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8)
      for (int l = 0; l < 8; ++l) sums[l] = fused(a[i + l], b[i + l], sums[l]);
    for (; i < n; ++i) sums[0] = fused(a[i], b[i], sums[0]);
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
  }

  std::int64_t size_ = 0;  // K²
  precision_matrix<double> precision_;
  double* evidence_ = nullptr;                        // J before each token of the chunk, and after the last
  double *factors_ = nullptr, *solutions_ = nullptr;  // of each Λ; x of each token
  double *image_ = nullptr, *pulled_ = nullptr;       // Λ⁻¹dx and dJ'k
  double* prior_ = nullptr;
};

}  // namespace palimpsa::cpu
