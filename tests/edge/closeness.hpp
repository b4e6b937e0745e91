#pragma once
// How far a result may be from the right one, element by element: a small multiple of what one rounding of every input would do to it,
// which no algorithm can avoid. So a sum that cancels has room for its terms' roundings, and nothing else has room for anything.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "edge/engine.hpp"
#include "edge/laws.hpp"
#include "edge/tape.hpp"

namespace palimpsa_test {

inline double size_of(quad x) { return std::fabs(static_cast<double>(x)); }

/// Which roundings are granted.
enum class granted {
  inputs,           ///< one of every input, gate and cotangent
  inputs_and_state  ///< one of every cell of the state after every token as well: a state lies in memory between two calls
};

/// The right answers, and how far each moves in units of a relative change of what is granted: Δy/δ, the most of a few random
/// changes of up to 2δ. (Changes of one size cancel exactly too often.)
struct right_answers {
  answers_of<quad> value;
  answers condition;
};

right_answers right_answers_of(axes r, edge_problem const& p, granted what = granted::inputs, int samples = 6);

/// The problem with one β a head: DeltaNets in chunks take no other.
inline edge_problem with_beta_per_head(edge_problem p) {
  if (p.beta_per_channel)
    for (std::int64_t t = 0; t < p.T; ++t) p.beta[static_cast<std::size_t>(t)] = p.beta[static_cast<std::size_t>(t * p.V)];
  p.beta.resize(static_cast<std::size_t>(p.T));
  p.beta_per_channel = false;
  return p;
}

/// Whether this element is zero or of a size in [low, high], with what cancels in it.
inline bool in_range(right_answers const& right, std::size_t which, std::size_t e, double low, double high) {
  double const size = size_of(right.value[which][e]);
  return size <= high && right.condition[which][e] <= high && (size >= low || right.value[which][e] == 0);
}
inline bool in_range(right_answers const& right, std::size_t which, double low, double high) {
  for (std::size_t e = 0; e < right.value[which].size(); ++e)
    if (!in_range(right, which, e, low, high)) return false;
  return true;
}
inline bool in_range(right_answers const& right, double low, double high) {
  for (std::size_t i = 0; i < result_count; ++i)
    if (!in_range(right, i, low, high)) return false;
  return true;
}

/// The worst error of one result, in units of ε (|right| + condition); infinite where something is not finite.
struct worst_element {
  double units = 0, got = 0, right = 0, condition = 0;
  std::size_t element = 0;
};

/// Elements outside [low, high] are not looked at; an error of `absolute` is none.
inline worst_element worst_of(numbers const& x, right_answers const& right, std::size_t which, double epsilon, double low = 0,
                              double high = std::numeric_limits<double>::infinity(), double absolute = 0) {
  worst_element worst;
  auto const& y = right.value[which];
  if (x.size() != y.size()) return {std::numeric_limits<double>::infinity(), 0, 0, 0, 0};
  double const floor = (std::max)(epsilon > 1e-10 ? 1e-36 : 1e-290, absolute);  // where the type's own range ends
  for (std::size_t e = 0; e < y.size(); ++e) {
    if (!in_range(right, which, e, low, high)) continue;
    double const error = std::isfinite(x[e]) ? size_of(static_cast<quad>(x[e]) - y[e]) : std::numeric_limits<double>::infinity();
    double const units = error <= floor ? 0 : error / (epsilon * (size_of(y[e]) + right.condition[which][e]) + floor);
    if (!(units <= worst.units)) worst = {units, x[e], static_cast<double>(y[e]), right.condition[which][e], e};
  }
  return worst;
}

inline double epsilon_of(bool in_double) {
  return in_double ? std::numeric_limits<double>::epsilon() : static_cast<double>(std::numeric_limits<float>::epsilon());
}

/// How a path walks: the laws of laws.hpp are not the same.
enum class walks { by_token, in_chunks };

/// What a problem is, and the worst element of each result beyond what laws.hpp allows: empty if there is none. `compared` counts results.
std::string beyond(engine const& e, walks how, edge_problem const& p, right_answers const& right, int& compared, double low = 0,
                   double high = std::numeric_limits<double>::infinity());

}  // namespace palimpsa_test
