// Lesson: remember, learn, forget: one importance a cell decides which.
//
// A Palimpsa memory of V×K = 3×4 cells, one item a key. Every item brings three values, told with β = 1, 0.1 and 0: surely, vaguely,
// not at all. The importance I = prior + J of a cell counts what it was told, each observation by what the gate has left of it, and 1/I
// is the size of its next step. One item a token, at most:
//
//     A   taught 12 times, then left alone     falls back to the prior, and is forgotten
//     B   taught, and repeated to the end      stays important: remembered
//     C   taught late                          free until then: learns at once
//     D   never taught                         stays at the prior
//
// Keys are one-hot, so that every cell is a discounted sum, which checks the library here.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "palimpsa/palimpsa.hpp"
#include "support/picture.hpp"
#include "support/table.hpp"

using namespace palimpsa;
using example::text;

constexpr std::size_t K = 4, V = 3, T = 120;
constexpr double prior = 0.1, log_decay = -0.05, certainty[V] = {1, 0.1, 0};
constexpr char const* item[K] = {"A", "B", "C", "D"};

/// The item that token t teaches; K if none.
constexpr std::size_t taught(std::size_t t) {
  if (t < 24) return t % 2;             // A, B, A, B, ...
  if (t >= 80 && t < 92) return 2;      // C
  return t % 8 == 0 ? 1 : K;            // B again
}

using cells = std::array<double, V * K>;
struct moment {
  cells importance, recall;  // recall: the share of the value that is read, 0 to 1
};

/// All values are 1, so that the mean of a cell is the share that it recalls.
std::vector<moment> remember() {
  cells eta{}, evidence{};
  std::vector<moment> moments;
  for (std::size_t t = 0; t < T; ++t) {
    double key[K] = {}, beta[V] = {}, value[V] = {1, 1, 1}, out[V];
    if (taught(t) < K) {
      key[taught(t)] = 1;
      std::copy(certainty, certainty + V, beta);
    }
    step_arguments<double> a;
    a.q = a.k = {key, {1, 1, 1, K}};
    a.v = {value, {1, 1, 1, V}};
    a.beta = {beta, {1, 1, 1, V}};
    a.log_decay = {&log_decay, {1, 1, 1}};
    a.prior = {&prior, {1}};
    a.eta = {eta.data(), {1, 1, V, K}};
    a.evidence = {evidence.data(), {1, 1, V, K}};
    a.out = {out, {1, 1, 1, V}};
    step<Palimpsa>(sequential{}, a, allocate);
    moment now;
    moment_state<double> const to{{now.recall.data(), {1, 1, V, K}}, {now.importance.data(), {1, 1, V, K}}};
    to_moments<Palimpsa, double>({a.eta, a.evidence}, a.prior, to);
    moments.push_back(now);
  }
  return moments;
}

/// The importance of a cell after token t, by counting.
double counted(std::size_t value, std::size_t key, std::size_t t) {
  double sum = prior;
  for (std::size_t s = 0; s <= t; ++s)
    if (taught(s) == key) sum += certainty[value] * std::exp(log_decay * static_cast<double>(t - s));
  return sum;
}

/// Gnuplot's for the heat map: one line a cell, items apart.
std::string map_settings() {
  std::string ticks, lines;
  for (std::size_t j = 0; j < K; ++j) {
    char const* const told[V] = {" surely", "vaguely", "not told"};
    for (std::size_t i = 0; i < V; ++i)
      ticks += std::string(j + i == 0 ? "" : ", ") + "'" + (i == 0 ? item[j] : "") + told[i] + "' " + std::to_string(V * j + i);
    std::string const y = text(static_cast<double>(V * j) - 0.5, "%.1f");
    if (j > 0) lines += "set arrow from 0.5," + y + " to 120.5," + y + " nohead front lc 'gray40'; ";
  }
  return "set title 'importance of every cell: observations remembered, on a prior of 0.1; log\\_decay -0.05 a token'; "
         "set lmargin at screen 0.13; set rmargin at screen 0.87; unset grid; set logscale cb; set cbrange [0.1:10]; "
         "set palette defined (0 'white', 1 '#c6dbef', 2 '#4292c6', 3 '#08306b'); set xrange [0.5:120.5]; "
         "set yrange [11.5:-0.5]; set ytics (" + ticks + "); " + lines;
}

int main() {
  auto const moments = remember();
  example::curve image{"", "image", {}};
  std::vector<example::curve> recalls;
  char const* const styles[K] = {"dt 2 lc '#d55e00'", "lc '#0072b2'", "dt 4 lc '#009e73'", "dt 3 lc 'gray40'"};
  char const* const fates[K] = {"A: taught, left alone", "B: taught, repeated", "C: taught late", "D: never taught"};
  example::table table({"item", "I after 24", "recall", "I after 80", "recall", "I after 120", "recall"});
  double gap = 0;
  for (std::size_t j = 0; j < K; ++j) {
    recalls.push_back({fates[j], "lines lw 2.5 " + std::string(styles[j]), {}});
    for (std::size_t t = 0; t < T; ++t) recalls.back().points.push_back({static_cast<double>(t + 1), moments[t].recall[j]});
    for (std::size_t i = 0; i < V; ++i)
      for (std::size_t t = 0; t < T; ++t) {
        double const I = moments[t].importance[i * K + j];
        image.points.push_back({static_cast<double>(t + 1), static_cast<double>(V * j + i), I});
        gap = (std::max)(gap, std::fabs(I / counted(i, j, t) - 1));
      }
    std::vector<std::string> row{item[j]};
    for (std::size_t t : {24, 80, 120})
      row.push_back(text(moments[t - 1].importance[j], "%.2f")), row.push_back(text(moments[t - 1].recall[j], "%.2f"));
    table.add(row);
  }
  table.print();
  bool const drawn = example::draw(
      "importance", "860,640",
      {{"", "", map_settings(), {image}},
       {"token", "recall",
        "set title 'share of the sure value that each key recalls'; unset arrow; unset colorbox; set grid lc '#dddddd'; "
        "set yrange [0:1.05]; set ytics 0.5; set key at graph 0.5, graph 0.66 spacing 1.2",
        recalls}},
      1);

  example::claims claims;
  moment const &taught_well = moments[23], &quiet = moments[79], &last = moments[T - 1];
  claims.that(gap < 1e-12, "every importance is the prior and a discounted count, to " + text(gap, "%.1e"));
  claims.that(taught_well.recall[0] > 0.9 && last.importance[0] < 2 * prior && last.recall[0] < 0.5,
              "left alone, A falls back to the prior and is forgotten");
  double least = 1;
  for (std::size_t t = 23; t < T; ++t) least = (std::min)(least, moments[t].recall[1]);
  claims.that(least > 0.9, "repeated, B is remembered all the time: at least " + text(least, "%.2f"));
  claims.that(quiet.importance[2] == prior && moments[80].recall[2] > 0.9, "free until then, C is learned at once");
  return drawn ? claims.exit_code() : 1;
}
