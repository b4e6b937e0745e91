#pragma once
/// @file
/// x = Λ⁻¹q, Λ = diag(prior) + J, by conjugate gradients for a team of threads that owns a head. The diagonal D of Λ preconditions:
/// the method runs on the system D^(-1/2) Λ D^(-1/2) y = D^(-1/2) q, x = D^(-1/2) y, whose diagonal is 1, so that keys and priors of any
/// size neither overflow nor vanish in squares. The stop is relative, ‖r‖ ≤ tolerance · ‖D^(-1/2) q‖ with r the residual of that system,
/// and q is scaled by a power of two, so that x(c·q) = c·x(q). Host and device.
///
/// A Team has rank(), size(), sync(), sum(x) and largest(x) over its threads, the result in every thread.

#include <cmath>

#include "palimpsa/detail/config.hpp"

namespace palimpsa::cuda {

/// One thread that is a whole team: the host twin.
struct team_of_one {
  /// 0.
  static int rank() { return 0; }
  /// 1.
  static int size() { return 1; }
  /// Nothing to wait for.
  static void sync() {}
  /// x.
  static float sum(float x) { return x; }
  /// x.
  static float largest(float x) { return x; }
};

/// Vectors of a solve, K floats each, and the matrix they are solved with.
struct linear_system {
  int keys;           ///< K
  float* evidence;    ///< J, K×K, symmetric
  float* prior;       ///< diag(prior)
  float* query;       ///< q; after solve() still q
  float* solution;    ///< x
  float* scale;       ///< scratch: D^(-1/2), D the diagonal of Λ
  float* residual;    ///< scratch: D^(-1/2) (q - Λx)
  float* direction;   ///< scratch: p
  float* image;       ///< scratch: D^(-1/2) Λp

  /// Floats that the vectors take.
  PALIMPSA_HD static constexpr int vectors(int keys) { return 7 * keys; }

  /// Lays the vectors out, one after another.
  PALIMPSA_HD static linear_system over(float* matrix, float* vectors, int keys) {
    return {keys,          matrix,        vectors, vectors + keys, vectors + 2 * keys, vectors + 3 * keys,
            vectors + 4 * keys, vectors + 5 * keys, vectors + 6 * keys};
  }
};

namespace detail {

/// Row i of Λp. J is symmetric, so its column is read: neighbouring threads read neighbouring cells.
PALIMPSA_HD inline float apply(linear_system const& s, int i) {
  float sum[4] = {s.prior[i] * s.direction[i], 0, 0, 0};
  int j = 0;
  for (; j + 4 <= s.keys; j += 4)
    for (int c = 0; c < 4; ++c) sum[c] += s.evidence[(j + c) * s.keys + i] * s.direction[j + c];
  for (; j < s.keys; ++j) sum[0] += s.evidence[j * s.keys + i] * s.direction[j];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// A power of two as two factors, since 2^±150 is no float but its root is.
struct power_of_two {
  float first = 1, second = 1;
  power_of_two() = default;
  PALIMPSA_HD explicit power_of_two(int exponent)
      : first(ldexpf(1.0f, exponent / 2)), second(ldexpf(1.0f, exponent - exponent / 2)) {}
  PALIMPSA_HD float operator*(float x) const { return x * first * second; }
};

/// The exponent e with 2^(e-1) ≤ largest |x| < 2^e over the team's numbers; 0 where that is 0, infinite or no number.
template <class Team>
PALIMPSA_HD int common_exponent(Team const& team, float const* x, int n) {
  float most = 0;
  for (int i = team.rank(); i < n; i += team.size()) {
    float const size = x[i] < 0 ? -x[i] : x[i];
    most = size > most || size != size ? size : most;
  }
  most = team.largest(most);
  int exponent = 0;
  if (most > 0 && most - most == 0) frexpf(most, &exponent);
  return exponent;
}

/// scale ← D^(-1/2), residual ← 2^e D^(-1/2) q with largest element near 1, x ← 0. Returns -e. Two steps, since q and D^(-1/2) may
/// each be near the end of float's range.
template <class Team>
PALIMPSA_HD int begin(Team const& team, linear_system const& s) {
  int const of_query = common_exponent(team, s.query, s.keys);
  power_of_two const down(-of_query);
  for (int i = team.rank(); i < s.keys; i += team.size()) {
    s.scale[i] = 1 / sqrtf(s.prior[i] + s.evidence[i * s.keys + i]);
    s.residual[i] = s.scale[i] * (down * s.query[i]);
    s.solution[i] = 0;
  }
  int const of_residual = common_exponent(team, s.residual, s.keys);
  power_of_two const further_down(-of_residual);
  for (int i = team.rank(); i < s.keys; i += team.size()) {
    s.residual[i] = further_down * s.residual[i];
    s.direction[i] = s.scale[i] * s.residual[i];
  }
  return of_query + of_residual;
}

/// One iteration: x += a p, r -= a D^(-1/2) Λp, p ← D^(-1/2) r + b p. Returns the new ‖r‖², or a negative number where p shows that Λ,
/// as rounded, is not positive definite.
template <class Team>
PALIMPSA_HD float iterate(Team const& team, linear_system const& s, float rr) {
  float share = 0;
  for (int i = team.rank(); i < s.keys; i += team.size()) {
    float const image = apply(s, i);
    s.image[i] = s.scale[i] * image;
    share += s.direction[i] * image;
  }
  float const curvature = team.sum(share);
  if (curvature <= 0) return -1;
  float const step = rr / curvature;
  share = 0;
  for (int i = team.rank(); i < s.keys; i += team.size()) {
    s.solution[i] += step * s.direction[i];
    s.residual[i] -= step * s.image[i];
    share += s.residual[i] * s.residual[i];
  }
  float const next = team.sum(share), keep = next / rr;
  for (int i = team.rank(); i < s.keys; i += team.size()) s.direction[i] = s.scale[i] * s.residual[i] + keep * s.direction[i];
  team.sync();
  return next;
}

}  // namespace detail

/// Solves for `solution`; returns the iterations taken. All threads of the team call it; sync'd on return. Where Λ is so
/// ill-conditioned that its rounded form is not positive definite (condition above about 1e7), the solution so far is kept.
template <class Team>
PALIMPSA_HD int solve(Team const& team, linear_system const& s, int most_iterations, float tolerance) {
  int const exponent = detail::begin(team, s);
  float share = 0;
  for (int i = team.rank(); i < s.keys; i += team.size()) share += s.residual[i] * s.residual[i];
  float rr = team.sum(share);
  float const enough = tolerance * tolerance * rr;
  int iteration = 0;
  for (; iteration < most_iterations && !(rr <= enough); ++iteration) {
    rr = detail::iterate(team, s, rr);
    if (rr < 0) break;
  }
  detail::power_of_two const up(exponent);
  for (int i = team.rank(); i < s.keys; i += team.size()) s.solution[i] = up * s.solution[i];
  team.sync();
  return iteration;
}

}  // namespace palimpsa::cuda
