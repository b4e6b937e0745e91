#pragma once
// Gains of a user's own, with a cap and a floor, and the right values of rules made of them by a plain loop.

#include <cmath>

#include "palimpsa/elementwise.hpp"
#include "palimpsa/rule.hpp"
#include "support/problem.hpp"

namespace palimpsa_test {

/// The exact gain, but never more than half the way. (docs/policies.md)
struct capped_gain {
  static constexpr bool sees_all = true;
  template <class Lanes, class T>
  PALIMPSA_HD static constexpr T at(Lanes lanes, T, T all) {
    return palimpsa::minimum(lanes.reciprocal(1 + all), 0.5);
  }
  template <class Lanes, class T>
  PALIMPSA_HD static constexpr palimpsa::slopes<T> slope(Lanes lanes, T, T all) {
    T const s = lanes.reciprocal(1 + all);
    return {T{}, palimpsa::select(s < 0.5, -(s * s), 0)};
  }
};

/// A gain that falls with what the cell itself has seen, to a quarter at least.
struct floored_gain {
  static constexpr bool sees_all = false;
  template <class Lanes, class T>
  PALIMPSA_HD static T at(Lanes, T own, T) {
    return palimpsa::maximum(palimpsa::exp(-4 * own), 0.25);
  }
  template <class Lanes, class T>
  PALIMPSA_HD static palimpsa::slopes<T> slope(Lanes, T own, T) {
    T const s = palimpsa::exp(-4 * own);
    return {palimpsa::select(s > 0.25, -4 * s, 0), T{}};
  }
};

using capped_kalman = palimpsa::rule<palimpsa::memory::diagonal, palimpsa::evidence::full, capped_gain>;
using floored_longhorn = palimpsa::rule<palimpsa::memory::nothing, palimpsa::evidence::diagonal, floored_gain>;

/// Reads of a problem without an initial state, HK = 1, β a channel, by capped_kalman if capped, else by floored_longhorn. Carries the
/// mean μ and the importance I = prior + J (1 where none is kept).
inline numbers plain_reads(problem const& p, bool capped) {
  recipe const& s = p.sizes;
  auto const K = static_cast<std::size_t>(s.K), HV = static_cast<std::size_t>(s.HV), V = static_cast<std::size_t>(s.V);
  numbers out, m(K), R(K);
  for (std::size_t b = 0; b < static_cast<std::size_t>(s.B); ++b) {
    numbers mean(HV * V * K), importance(HV * V * K, 1);
    for (std::size_t i = 0; capped && i < importance.size(); ++i) importance[i] = p.prior[i / (V * K)];
    for (std::size_t t = b * static_cast<std::size_t>(s.T); t < (b + 1) * static_cast<std::size_t>(s.T); ++t)
      for (std::size_t row = 0; row < HV * V; ++row) {
        double const *const k = &p.k[t * K], *const q = &p.q[t * K], beta = p.beta[t * HV * V + row];
        double const alpha = std::exp(p.log_decay[t * HV + row / V]);
        double km = 0, all = 0, read = 0;
        for (std::size_t j = 0; j < K; ++j) {
          double const I = importance[row * K + j];
          R[j] = capped ? alpha * I + (1 - alpha) * p.prior[row / V] : 1;
          m[j] = alpha * I * mean[row * K + j] / R[j];
          km += k[j] * m[j];
          all += beta * k[j] * k[j] / R[j];
        }
        for (std::size_t j = 0; j < K; ++j) {
          double const own = beta * k[j] * k[j] / R[j], c = capped ? km : k[j] * m[j];
          double const gain = capped ? std::fmin(1 / (1 + all), 0.5) : std::fmax(std::exp(-4 * own), 0.25);
          mean[row * K + j] = m[j] + gain * k[j] / R[j] * beta * (p.v[t * HV * V + row] - c);
          if (capped) importance[row * K + j] = R[j] * (1 + own);
          read += mean[row * K + j] * q[j];
        }
        out.push_back(s.scale * read);
      }
  }
  return out;
}

}  // namespace palimpsa_test
