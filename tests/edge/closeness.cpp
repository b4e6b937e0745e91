// See closeness.hpp. Numbers of 113 bits take a compiler long: once for all tests.

#include "edge/closeness.hpp"

#include <random>
#include <sstream>

#include "edge/quad_oracle.hpp"

namespace palimpsa_test {

right_answers right_answers_of(axes r, edge_problem const& p, granted what, int samples) {
  auto const same = [](quad x) { return x; };
  right_answers right{quad_answers(r, p, same, [](traced x, auto...) { return x; }), {}};
  for (std::size_t i = 0; i < result_count; ++i) right.condition[i].assign(right.value[i].size(), 0);
  std::minstd_rand dice(1);
  quad const change = static_cast<quad>(1e-17);
  auto const random = [=](auto& from) {  // in [-2δ, 2δ]
    return change * (static_cast<quad>(from() - from.min()) / static_cast<quad>(from.max() - from.min()) * 4 - 2);
  };
  for (int n = 0; n < samples; ++n) {
    auto const salt = dice();
    auto const kept = [=](traced x, std::size_t t, std::size_t i, std::size_t j) {
      std::minstd_rand sign(static_cast<unsigned>((t * 131 + i) * 137 + j) ^ salt);
      sign.discard(2);
      return what == granted::inputs ? x : x * traced(1 + random(sign));
    };
    auto const moved = quad_answers(r, p, [&](quad x) { return x * (1 + random(dice)); }, kept);
    for (std::size_t i = 0; i < result_count; ++i)
      for (std::size_t e = 0; e < right.condition[i].size(); ++e)
        right.condition[i][e] = (std::max)(right.condition[i][e], size_of((moved[i][e] - right.value[i][e]) / change));
  }
  return right;
}

std::string beyond(engine const& e, walks how, edge_problem const& p, right_answers const& right, int& compared, double low, double high) {
  std::ostringstream text;
  for (bool in_double : {false, true}) {
    answers const a = in_double ? e.in_double(p) : e.in_float(p);
    for (std::size_t i = 0; i < result_count; ++i) {
      if (right.value[i].empty() || a[i].empty()) continue;
      ++compared;
      allowance const may = allowed(e.at, how == walks::in_chunks, p, i, epsilon_of(in_double));
      worst_element const w = worst_of(a[i], right, i, epsilon_of(in_double), low, high, may.absolute);
      if (w.units <= may.units) continue;
      text.precision(9);
      text << "\n  " << (in_double ? "double " : "float ") << name_of(i) << '[' << w.element << "] = " << w.got << ", right " << w.right
           << ": off by " << w.units << " units of eps (" << std::fabs(w.right) << " + " << w.condition << "), allowed " << may.units;
    }
  }
  if (text.str().empty()) return {};
  std::ostringstream all;
  all << e.name << ": " << p << text.str();
  return all.str();
}

}  // namespace palimpsa_test
