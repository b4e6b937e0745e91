// Lesson: what a rule drops is seen in the shape of its belief.
//
// A row of two cells, s = (s₁, s₂), believed to be N(0, 1), has been told s·k = v three times by one key. A token with another key
// follows: "s·k is v, give or take 1/sqrt(β)", one equation for two cells. Each panel shows a rule's belief N(μ, Λ⁻¹) before and after
// that token as ellipses of one standard deviation, over the exact posterior in grey and the line of the token, s·k = v.
//
//     MesaNet           drops nothing: the ellipse tilts, long along what no token has told
//     DiagonalKalman    drops the correlation: axes stay upright, and shorter than the exact belief is wide: it is too sure
//     Palimpsa          and the cross terms in the mean: every cell explains the whole of v by itself
//     Longhorn, GatedDeltaNet, Mamba2    forget the precision: the same circle before and after every token, only the mean moves

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>
#include <vector>

#include "palimpsa/palimpsa.hpp"
#include "support/picture.hpp"
#include "support/table.hpp"

using namespace palimpsa;
using example::text;

constexpr double key[2][2] = {{0.6, 0.8}, {0.28, 0.96}}, value[2] = {0.6, 1.3}, beta = 0.9, prior = 1;  // keys of length 1

struct belief {
  double mean[2], variance[2], covariance;
};

/// The belief before and after the last token, as the library's state says it.
template <class Rule> std::array<belief, 2> beliefs() {
  std::array<belief, 2> seen;
  double const no_gate = 0;
  double eta[2] = {}, J[4] = {}, mean[2], I[4] = {1, 0, 0, 1}, out;
  view<double> const precision = Rule::keeps_full ? view<double>(J, {1, 1, 2, 2}) : view<double>(J, {1, 1, 1, 2});
  for (int t : {0, 0, 0, 1}) {
    step_arguments<double> a;
    a.q = a.k = {key[t], {1, 1, 1, 2}};
    a.v = {&value[t], {1, 1, 1, 1}};
    a.beta = {&beta, {1, 1, 1}};
    a.log_decay = {&no_gate, {1, 1, 1}};
    if (Rule::keeps_precision) a.prior = {&prior, {1}};
    a.eta = {eta, {1, 1, 1, 2}};
    if (Rule::keeps_precision) a.evidence = precision;
    a.out = {&out, {1, 1, 1, 1}};
    step<Rule>(sequential{}, a, allocate);
    moment_state<double> moments{{mean, {1, 1, 1, 2}}, {}};
    if (Rule::keeps_precision) moments.importance = precision, moments.importance.data = I;
    std::vector<std::byte> scratch(to_moments_workspace<Rule>(a.eta));
    to_moments<Rule, double>({a.eta, a.evidence}, a.prior, moments, scratch);
    double const first = I[0], second = Rule::keeps_diagonal ? I[1] : I[3], cross = Rule::keeps_full ? I[1] : 0;
    double const det = first * second - cross * cross;
    seen[static_cast<std::size_t>(t)] = {{mean[0], mean[1]}, {second / det, first / det}, -cross / det};
  }
  return seen;
}

/// One standard deviation around the mean.
std::vector<example::point> ellipse(belief const& b) {
  std::vector<example::point> points;
  double const x = std::sqrt(b.variance[0]), slant = b.covariance / x, y = std::sqrt(b.variance[1] - slant * slant);
  for (int i = 0; i <= 60; ++i) {
    double const c = std::cos(i * std::numbers::pi / 30), s = std::sin(i * std::numbers::pi / 30);
    points.push_back({b.mean[0] + x * c, b.mean[1] + slant * c + y * s});
  }
  return points;
}

double distance(belief const& a, belief const& b) { return std::hypot(a.mean[0] - b.mean[0], a.mean[1] - b.mean[1]); }

int main() {
  auto const exact = beliefs<MesaNet>();
  example::table table({"rule", "mean", "deviation of s1", "of s2", "correlation", "mean off by"});
  std::vector<example::panel> panels;
  auto const add = [&](char const* name, char const* drops, std::array<belief, 2> const& b) {
    double const s1 = std::sqrt(b[1].variance[0]), s2 = std::sqrt(b[1].variance[1]);
    table.add({name, text(b[1].mean[0], "(%.2f, ") + text(b[1].mean[1], "%.2f)"), text(s1, "%.2f"), text(s2, "%.2f"),
               text(0 + b[1].covariance / (s1 * s2), "%.2f"), text(distance(b[1], exact[1]), "%.2f")});
    auto const at = [](double x) { return example::point{x, (value[1] - x * key[1][0]) / key[1][1]}; };
    panels.push_back({"cell 1", "cell 2",
                      std::string("set title \"{/:Bold ") + name + "}\\n" + drops + "\"; set size ratio -1; set clip two; "
                      "set xrange [-1:3.5]; set yrange [-1:3.5]; set xtics 1; set ytics 1; set tmargin 3.2; set bmargin 2.8; " +
                      (panels.empty() ? "set key top right samplen 1.5" : "unset key"),
                      {{"exact, after", "filledcurves closed fc '#cccccc'", ellipse(exact[1])},
                       {"the token: s·k = v", "lines dt 3 lw 1.5 lc 'black'", {at(-2), at(4)}},
                       {"before", "lines lw 1.5 dt 2 lc '#56b4e9'", ellipse(b[0])},
                       {"after", "lines lw 2.5 lc '#0072b2'", ellipse(b[1])},
                       {"", "points pt 6 ps 0.7 lw 1.5 lc '#56b4e9'", {{b[0].mean[0], b[0].mean[1]}}},
                       {"", "points pt 7 ps 0.7 lc '#0072b2'", {{b[1].mean[0], b[1].mean[1]}}}}});
    return b;
  };
  add("MesaNet", "drops nothing: tilted", exact);
  std::array const upright{add("DiagonalKalman", "drops the correlation: upright", beliefs<DiagonalKalman>()),
                           add("Palimpsa", "and cross terms in the mean", beliefs<Palimpsa>())};
  std::array const circles{add("Longhorn", "forgets the precision: a circle", beliefs<Longhorn>()),
                           add("GatedDeltaNet", "... and takes the whole step", beliefs<GatedDeltaNet>()),
                           add("Mamba2", "never corrects: only adds", beliefs<Mamba2>())};
  table.print();
  bool const drawn = example::draw("two_cells", "900,660", panels, 3);

  example::claims claims;
  claims.that(exact[1].covariance < -0.1, "what no token has told is a direction, not a cell: the exact belief tilts");
  bool sure = true, same = true, further = true;
  for (auto const& b : upright)
    for (int j : {0, 1}) sure = sure && b[1].covariance == 0 && b[1].variance[j] < 0.95 * exact[1].variance[j];
  for (auto const& b : circles)
    for (auto const& at : b) same = same && at.variance[0] == 1 && at.variance[1] == 1 && at.covariance == 0;
  claims.that(sure, "without the correlation it is upright, and narrower than the exact belief is wide");
  claims.that(same, "without a precision it is the same circle before and after");
  double last = 0;
  for (auto const& b : {upright[0], upright[1], circles[0], circles[1], circles[2]})
    further = further && distance(b[1], exact[1]) > std::exchange(last, distance(b[1], exact[1]));
  claims.that(further, "the more is dropped, the further is the mean from the exact one");
  return drawn ? claims.exit_code() : 1;
}
