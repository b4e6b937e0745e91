#pragma once
/// @file
/// x = (diag(prior) + J)⁻¹ q by conjugate gradients with the diagonal as preconditioner, for a team of threads that owns a head.
/// The stop is relative, ‖r‖ ≤ tolerance · ‖q‖, and q is scaled by a power of two first, so that x(c·q) = c·x(q) and squares neither
/// overflow nor vanish. Host and device.
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
  float* residual;    ///< scratch
  float* direction;   ///< scratch
  float* image;       ///< scratch: Λ · direction

  /// Floats that the vectors take.
  PALIMPSA_HD static constexpr int vectors(int keys) { return 6 * keys; }
};

namespace detail {

/// Row i of Λ · direction. J is symmetric, so its column is read: neighbouring threads read neighbouring cells.
PALIMPSA_HD inline float apply(linear_system const& s, int i) {
  float sum[4] = {s.prior[i] * s.direction[i], 0, 0, 0};
  int j = 0;
  for (; j + 4 <= s.keys; j += 4)
    for (int c = 0; c < 4; ++c) sum[c] += s.evidence[(j + c) * s.keys + i] * s.direction[j + c];
  for (; j < s.keys; ++j) sum[0] += s.evidence[j * s.keys + i] * s.direction[j];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

}  // namespace detail

/// Solves for `solution`; returns the iterations taken. All threads of the team call it; sync'd on return.
template <class Team>
PALIMPSA_HD int solve(Team const& team, linear_system const& s, int most_iterations, float tolerance) {
  float most = 0;
  for (int i = team.rank(); i < s.keys; i += team.size()) {
    float const size = s.query[i] < 0 ? -s.query[i] : s.query[i];
    most = size > most || size != size ? size : most;
  }
  most = team.largest(most);
  int exponent = 0;
  if (most > 0 && most - most == 0) frexpf(most, &exponent);
  float const down = ldexpf(1.0f, -exponent / 2), down_rest = ldexpf(1.0f, -(exponent - exponent / 2));

  float rz = 0, rr = 0;
  for (int i = team.rank(); i < s.keys; i += team.size()) {
    float const r = s.query[i] * down * down_rest, z = r / (s.prior[i] + s.evidence[i * s.keys + i]);
    s.solution[i] = 0;
    s.residual[i] = r;
    s.direction[i] = z;
    rz += r * z;
    rr += r * r;
  }
  rz = team.sum(rz);
  rr = team.sum(rr);
  float const enough = tolerance * tolerance * rr;
  int iteration = 0;
  for (; iteration < most_iterations && !(rr <= enough); ++iteration) {
    float py = 0;
    for (int i = team.rank(); i < s.keys; i += team.size()) {
      s.image[i] = detail::apply(s, i);
      py += s.direction[i] * s.image[i];
    }
    float const step = rz / team.sum(py);
    float next_rz = 0;
    rr = 0;
    for (int i = team.rank(); i < s.keys; i += team.size()) {
      s.solution[i] += step * s.direction[i];
      float const r = s.residual[i] - step * s.image[i];
      s.residual[i] = r;
      next_rz += r * (r / (s.prior[i] + s.evidence[i * s.keys + i]));
      rr += r * r;
    }
    next_rz = team.sum(next_rz);
    rr = team.sum(rr);
    float const keep = next_rz / rz;
    rz = next_rz;
    for (int i = team.rank(); i < s.keys; i += team.size())
      s.direction[i] = s.residual[i] / (s.prior[i] + s.evidence[i * s.keys + i]) + keep * s.direction[i];
    team.sync();
  }
  float const up = ldexpf(1.0f, exponent / 2), up_rest = ldexpf(1.0f, exponent - exponent / 2);
  for (int i = team.rank(); i < s.keys; i += team.size()) s.solution[i] = s.solution[i] * up * up_rest;
  team.sync();
  return iteration;
}

}  // namespace palimpsa::cuda
