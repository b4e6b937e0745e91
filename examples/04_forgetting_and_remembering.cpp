// Lesson: a memory fails in two ways, and the gate moves it from one to the other.
//
// Sixteen items are taught 32 times over. Then eight of their keys get a new value, four times over, while the other
// eight stay silent. A memory that forgets nothing has grown so sure of the old values that it does not learn the new
// ones: catastrophic remembering. One that forgets fast learns them and loses the silent items: catastrophic
// forgetting. The importance I = prior + J of a cell, its precision, says which: it is the number of observations
// remembered, and 1/I is the step size.
//
// One head a gate, keys and values one-hot, so that the right answers are a few sums: they check the library here.

#include <algorithm>
#include <cmath>

#include "palimpsa/palimpsa.hpp"
#include "support/picture.hpp"
#include "support/table.hpp"

using namespace palimpsa;
using example::text;

constexpr int K = 16, V = 32, old_rounds = 32, new_rounds = 4, T = old_rounds * K + new_rounds * K / 2;
constexpr double prior = 0.1;

/// The key of token t: all sixteen in turn, later the first eight in turn.
std::size_t key_of(int t) { return static_cast<std::size_t>(t < old_rounds * K ? t % K : t % (K / 2)); }
/// The value channel of token t: item j has channel j at first, K + j later.
std::size_t value_of(int t) { return t < old_rounds * K ? key_of(t) : K + key_of(t); }

struct outcome {
  double log_decay, recall_old, recall_new;  // the share of a value that its key reads: 1 = all, 0 = nothing
  double gap;                                // largest difference of a recall to the right sums
  std::vector<example::point> importance;    // of a silent item's cell, by token
};

/// One memory with one gate, taught token by token.
outcome teach(double log_decay) {
  std::vector<double> eta(V * K), evidence(V * K), out(V);
  outcome o{log_decay, 0, 0, 0, {}};
  for (int t = 0; t < T; ++t) {
    std::vector<double> key(K), value(V);
    key[key_of(t)] = value[value_of(t)] = 1;
    step_arguments<double> a;
    a.q = a.k = {key.data(), {1, 1, 1, K}};
    a.v = {value.data(), {1, 1, 1, V}};
    a.log_decay = {&log_decay, {1, 1, 1}};
    a.prior = {&prior, {1}};
    a.eta = {eta.data(), {1, 1, V, K}};
    a.evidence = {evidence.data(), {1, 1, V, K}};
    a.out = {out.data(), {1, 1, 1, V}};
    step<Palimpsa>(sequential{}, a, allocate);
    o.importance.push_back({t + 1.0, prior + evidence[K - 1]});
  }
  for (std::size_t j = 0; j < K; ++j) {
    double right = 0, total = prior;  // Every observation of key j counts exp(log_decay * its age).
    std::size_t const channel = j < K / 2 ? K + j : j;
    for (int t = 0; t < T; ++t) {
      double const weight = key_of(t) == j ? std::exp(log_decay * (T - 1 - t)) : 0;
      total += weight;
      right += value_of(t) == channel ? weight : 0;
    }
    double const recall = eta[channel * K + j] / (prior + evidence[channel * K + j]);
    (j < K / 2 ? o.recall_new : o.recall_old) += recall / (K / 2);
    o.gap = (std::max)(o.gap, std::fabs(recall - right / total));
  }
  return o;
}

int main() {
  std::vector<outcome> outcomes{teach(0)};
  for (int third = -12; third <= 0; ++third) outcomes.push_back(teach(-std::pow(10.0, third / 3.0)));

  example::table table({"log_decay", "recall of old", "recall of new", "I when taught", "I at the end"});
  std::string const line = "linespoints lw 2 pt 7 ps 0.4 lc ";
  std::vector<example::curve> recalls{{"old items", line + "'#0072b2'", {}}, {"new values", line + "'#d55e00'", {}}},
      importance;
  double gap = 0, balance = 0;
  for (auto const& o : outcomes) {
    table.add({text(o.log_decay, "%.5f"), text(o.recall_old, "%.3f"), text(o.recall_new, "%.3f"),
               text(o.importance[old_rounds * K - 1].y, "%.3f"), text(o.importance.back().y, "%.3f")});
    if (o.log_decay < 0) {
      recalls[0].points.push_back({-o.log_decay, o.recall_old});
      recalls[1].points.push_back({-o.log_decay, o.recall_new});
    }
    gap = (std::max)(gap, o.gap);
    balance = (std::max)(balance, (std::min)(o.recall_old, o.recall_new));
  }
  table.print();
  for (auto const& [at, style] : {std::pair{0, "lc '#0072b2'"}, {7, "lc '#56b4e9'"}, {10, "lc '#d55e00'"}}) {
    auto const& o = outcomes[static_cast<std::size_t>(at)];
    importance.push_back(
        {"log\\_decay = " + text(o.log_decay, "%.2f"), "lines lw 1.5 " + std::string(style), o.importance});
  }
  bool const drawn = example::draw(
      "forgetting", "900,380",
      {{"-log\\_decay a token", "recall", "set logscale x; set yrange [0:1.05]; set key center left reverse Left",
        recalls},
       {"token", "importance I of a silent item",
        "unset logscale x; set logscale y; set xrange [0:560]; set yrange [0.1:1000]; set key top left", importance}});

  example::claims claims;
  auto const &never = outcomes.front(), &fast = outcomes.back();
  claims.that(gap < 1e-12, "every recall is a ratio of discounted counts, to " + text(gap, "%.1e"));
  claims.that(never.recall_old > 0.99 && never.recall_new < 0.15, "never forgetting, it does not learn the new");
  claims.that(fast.recall_old < 1e-3, "forgetting fast, it has lost what was silent");
  claims.that(balance > 0.6, "a gate between serves both: each recall at least " + text(balance, "%.2f"));
  return drawn ? claims.exit_code() : 1;
}
