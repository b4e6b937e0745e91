#pragma once
// Points of the family picked at run time. The templates behind them are instantiated in points_*.cpp alone.

#include <vector>

#include "edge/edge_problem.hpp"

namespace palimpsa_test {

/// What the library makes of a problem: everything it has to say, forward by the path named and backward.
struct engine {
  char const* name;
  axes at;
  answers (*in_float)(edge_problem const&);
  answers (*in_double)(edge_problem const&);
};

std::vector<engine> engines_without_memory();  ///< nothing remembered: what is published
std::vector<engine> engines_of_a_user();       ///< other points, as a user may name them
std::vector<engine> engines_with_memory();     ///< a diagonal, or all of the precision
std::vector<engine> engines_gated_per_key();   ///< one gate a key
std::vector<engine> engines_in_chunks();       ///< forward by matrix products; no gradients

/// Those that walk token by token.
inline std::vector<engine> every_engine() {
  std::vector<engine> all;
  for (auto const& some : {engines_without_memory(), engines_of_a_user(), engines_with_memory(), engines_gated_per_key()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace palimpsa_test
