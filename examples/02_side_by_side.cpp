// Lesson: what a rule keeps of the precision, and what its correction sees, decide what it can still recall.
//
// One task for all rules. A stream writes 256 random items (key, value) into a memory of 32 keys, eight times what it
// can hold. The components of the keys differ in size, from 1/e to e before a key is normalised. Every item is then
// read back by its key. Recall is the cosine between what is read and what was written, averaged over 64 streams, by
// lag: the age of the item. Every item comes with β = 1, the prior is 0.1 where a rule has one, and all gated rules
// forget at the same rate, log_decay = -0.02 a token (half in 35 tokens), so they differ only in how they write and read.
//
// Why exact Bayes is not first at lags 1-7: it divides what 32 keys can hold among all items by what the gate leaves of
// each, 1 of the newest and 0.87 of the eighth. A delta rule spends it all on the newest, which it then reads exactly,
// and overwrites what was there. Weighed by what the gate leaves of each item exact Bayes is first: discounted squares
// are what it minimises.

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "palimpsa/palimpsa.hpp"
#include "support/picture.hpp"
#include "support/table.hpp"

using namespace palimpsa;

constexpr int T = 256, H = 64, K = 32, V = 32;  // T items in each of H streams, one a head
constexpr float prior = 0.1f, log_decay = -0.02f;
using by_age = std::array<double, 8>;  // lags 1, 2-3, 4-7, ... 128-255

struct recalled {
  by_age mean{};
  double weighed = 0;  // over all ages, each by what the gate leaves of it
};

/// T tokens that write, then the same T to read them back: with beta = 0 and no gate a token writes nothing.
struct task {
  std::vector<float> key, value, beta, gate, priors = std::vector<float>(H, prior);
  task() {
    for (bool writing : {true, false}) {
      std::mt19937 random(2026);
      std::normal_distribution<float> normal;
      for (int item = 0; item < T * H; ++item) {
        for (int j = 0; j < K; ++j) key.push_back(normal(random) * std::exp(2 * static_cast<float>(j) / (K - 1) - 1));
        float const norm = std::sqrt(std::inner_product(key.end() - K, key.end(), key.end() - K, 0.0f));
        for (auto k = key.end() - K; k != key.end(); ++k) *k /= norm;
        for (int i = 0; i < V; ++i) value.push_back(normal(random));
        beta.push_back(writing ? 1.0f : 0.0f);
        gate.push_back(writing ? log_decay : 0.0f);
      }
    }
  }
};

/// Mean cosine between reads and written values.
template <class Rule> recalled recall(task const& t) {
  std::vector<float> read(t.value.size());
  scan_inputs<float> in;
  in.q = in.k = {t.key.data(), {1, 2 * T, H, K}};
  in.v = {t.value.data(), {1, 2 * T, H, V}};
  in.beta = {t.beta.data(), {1, 2 * T, H}};
  if (Rule::forget_type::scope == gate_scope::head) in.log_decay = {t.gate.data(), {1, 2 * T, H}};
  if (Rule::keeps_precision) in.prior = {t.priors.data(), {H}};
  scan_outputs<float> out;
  out.out = {read.data(), {1, 2 * T, H, V}};
  scan<Rule>(sequential{}, in, out, allocate);

  recalled r;
  double weights = 0;
  for (int item = H; item < T * H; ++item) {  // all but the first of each stream: lags 1 to T - 1
    float const *const x = read.data() + (T * H + item) * V, *const y = t.value.data() + item * V;
    auto const dot = [](float const* a, float const* b) { return std::inner_product(a, a + V, b, 0.0); };
    int const lag = T - item / H;
    double const cosine = dot(x, y) / std::sqrt(dot(x, x) * dot(y, y)), left = std::exp(log_decay * (lag - 1.0));
    auto const age = static_cast<std::size_t>(std::log2(lag));
    r.mean[age] += cosine / (H << age);
    r.weighed += left * cosine;
    weights += left;
  }
  r.weighed /= weights;
  return r;
}

int main() {
  task const t;
  struct row {
    char const *rule, *style;
    recalled recall;
  };
  std::array<row, 8> const rows{{{"LinearAttention", "pt 6 dt 3 lc 'gray40'", recall<LinearAttention>(t)},
                                 {"Mamba2", "pt 7 lc 'gray40'", recall<Mamba2>(t)},
                                 {"Longhorn", "pt 9 lc '#e69f00'", recall<Longhorn>(t)},
                                 {"DeltaNet", "pt 4 dt 3 lc '#d55e00'", recall<DeltaNet>(t)},
                                 {"GatedDeltaNet", "pt 5 lc '#d55e00'", recall<GatedDeltaNet>(t)},
                                 {"Palimpsa", "pt 11 lc '#0072b2'", recall<Palimpsa>(t)},
                                 {"DiagonalKalman", "pt 13 lc '#56b4e9'", recall<DiagonalKalman>(t)},
                                 {"MesaNet", "pt 7 lc 'black'", recall<MesaNet>(t)}}};

  std::cout << "recall by lag: " << T << " items in a memory of " << K << " keys, beta 1, prior " << prior << ", log_decay "
            << log_decay << "\n\n";
  example::table table({"rule", "1", "2-3", "4-7", "8-15", "16-31", "32-63", "64-127", "128-255", "by what is left"});
  std::vector<example::curve> curves;
  for (auto const& [rule, style, recall] : rows) {
    std::vector<std::string> cells{rule};
    curves.push_back({rule, "linespoints lw 2 ps 0.7 " + std::string(style), {}});
    for (double r : recall.mean) {
      double const first = std::exp2(curves.back().points.size());
      curves.back().points.push_back({std::sqrt(first * (2 * first - 1)), r});
      cells.push_back(example::text(r, "%.3f"));
    }
    cells.push_back(example::text(recall.weighed, "%.3f"));
    table.add(cells);
  }
  table.print();
  bool const drawn = example::draw(
      "side_by_side", "860,460",
      {{"age of the item in tokens; a point is the mean over ages 1, 2-3, 4-7, ... 128-255", "recall (cosine)",
        "set title '256 items in a memory of 32 keys: β = 1, prior 0.1, log\\_decay -0.02 a token'; set logscale x 2; "
        "set xrange [0.9:256]; set yrange [0:1.02]; set key outside right samplen 3 spacing 1.3",
        curves}});

  auto const& [linear, mamba2, longhorn, delta, gated_delta, palimpsa, kalman, mesa] = rows;
  auto const [low, high] = std::minmax_element(linear.recall.mean.begin(), linear.recall.mean.end());
  bool sure = true, best = true, first = true;
  for (std::size_t age = 0; age < 8; ++age) sure = sure && palimpsa.recall.mean[age] > mamba2.recall.mean[age];
  for (auto const* other : {&mamba2, &longhorn, &gated_delta, &palimpsa, &kalman}) {
    for (std::size_t age = 3; age < 6; ++age) best = best && mesa.recall.mean[age] > other->recall.mean[age];
    first = first && mesa.recall.weighed > other->recall.weighed;
  }
  example::claims claims;
  claims.that(*high - *low < 0.05, "linear attention recalls items of all ages alike");
  claims.that((std::min)(delta.recall.mean[0], gated_delta.recall.mean[0]) > 1 - 1e-5, "a delta rule reads the newest exactly");
  claims.that(sure, "knowing the precision of each cell, Palimpsa recalls more than Mamba2 at every lag");
  claims.that(best, "exact Bayes, MesaNet, is the best of the equally gated rules at lags 8 to 63");
  claims.that(first, "weighed by what the gate leaves of each item, it is the best of them over all lags");
  return drawn ? claims.exit_code() : 1;
}
