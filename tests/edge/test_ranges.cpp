// Products of three and more factors whose value is a fair number though a part of them is none: k² before β, βk²/R, scale² alone, β·v
// before ·k, squares in slopes. What was seen to break, by name, then magnitudes at random over the whole range of the contract.

#include "edge/closeness.hpp"
#include "edge/ranges.hpp"
#include "support/catch.hpp"

using namespace palimpsa_test;

namespace {

/// Results, and what cancels in them, of the products named are looked at where they lie in this range.
constexpr double low = 1e-30, high = 1e30;

/// What a float may answer where a problem lies outside the table of the contract.
enum class otherwise {
  nothing,    ///< but the right value: inside, or harmless outside
  no_number,  ///< NaN or an infinity
  or_zero,    ///< or 0, where a square, or a write times its gain, is below the smallest number
  less        ///< what is left when a term of a sum is
};

struct cell {
  char const* name;
  double q, k, v, beta, prior, scale, eta;
  otherwise in_float = otherwise::nothing;
};

bool may_be(otherwise what, worst_element const& w) {
  if (what == otherwise::less) return w.units * epsilon_of(false) <= 1;  // off by no more than what cancels
  if (what == otherwise::or_zero && w.got == 0) return true;
  return what != otherwise::nothing && !std::isfinite(w.got);
}

edge_problem one_cell(axes r, cell const& c) {
  edge_problem p;
  p.q = {c.q}, p.k = {c.k}, p.v = {c.v}, p.beta = {c.beta}, p.eta = {c.eta}, p.scale = c.scale;
  if (r.forget != gates::none) p.log_decay = {-0.5};
  p.d_out = {1}, p.d_eta = {0};
  if (r.memory != keeps::nothing) p.prior = {c.prior}, p.J = {0}, p.d_J = {0};
  if (r.memory == keeps::diagonal) p.d_variance = {0};
  return as_floats(p);
}

/// A full memory solves a system whose matrix was rounded into the state.
granted granted_to(axes r) { return r.memory == keeps::full ? granted::inputs_and_state : granted::inputs; }

/// CHECKs one cell, in float and double.
void hold(engine const& e, cell const& c, int& compared) {
  edge_problem const p = one_cell(e.at, c);
  right_answers const right = right_answers_of(e.at, p);
  for (bool in_double : {false, true}) {
    answers const a = in_double ? e.in_double(p) : e.in_float(p);
    for (std::size_t i = 0; i < result_count; ++i) {
      if (right.value[i].empty() || a[i].empty()) continue;
      ++compared;
      allowance const may = allowed(e.at, false, p, i, epsilon_of(in_double));
      worst_element const w = worst_of(a[i], right, i, epsilon_of(in_double), low, high, may.absolute);
      if (w.units <= may.units || (!in_double && may_be(c.in_float, w))) continue;
      FAIL_CHECK(c.name << ": " << e.name << (in_double ? " double " : " float ") << name_of(i) << " = " << w.got << ", right " << w.right);
    }
  }
}

}  // namespace

TEST_CASE("No product leaves the range before its result does") {
  cell const with_memory[] = {
      {"k squared before beta", 1e20, 1e20, 1, 1e-20, 1, 1, 0},
      {"k squared before beta, small", 1e-15, 1e-15, 1e15, 1e15, 1e-15, 1, 1},
      {"beta k squared over the prior", 1, 1, 1, 1e10, 1e-30, 1, 0, otherwise::no_number},
      {"scale squared, large prior", 1, 1, 1e10, 1, 1e30, 1e20, 0, otherwise::no_number},
      {"scale squared, small query", 1e-25, 1, 1, 1, 1, 1e25, 0.5, otherwise::or_zero},
      {"q squared", 1e20, 1, 1, 1e24, 1e20, 1e-15, 1, otherwise::less},
      {"one over the prior squared", 1e-10, 1e-15, 1, 1e10, 1e-20, 1, 1e-10},
  };
  cell const for_all[] = {
      {"beta v before k, large", 1e-20, 1e-15, 1e15, 1e25, 1, 1, 0},
      {"beta v before k, small", 1e18, 1e18, 1e-18, 1e-24, 1, 1, 0, otherwise::or_zero},
      {"a gain of 1e-12", 1, 1e-10, 1e-5, 1e30, 1, 1, 1e5},
  };
  int compared = 0;
  for (engine const& e : every_engine())
    for (bool any : {false, true}) {
      if (!any && e.at.memory == keeps::nothing) continue;
      for (cell const* c = any ? std::begin(for_all) : std::begin(with_memory); c != (any ? std::end(for_all) : std::end(with_memory)); ++c) {
        hold(e, *c, compared);
      }
    }
  CHECK(compared > 2000);
}

TEST_CASE("Magnitudes at random over the range of the contract") {
  int compared = 0, in_chunks = 0;
  for (walks how : {walks::by_token, walks::in_chunks})
    for (engine const& e : how == walks::in_chunks ? engines_in_chunks() : every_engine())
      for (std::uint64_t n = 1; n <= 300; ++n) {
        edge_problem p = draw_range(e.at, n);
        if (how == walks::in_chunks) p = with_beta_per_head(p);
        if (!is_given(p)) continue;
        right_answers const right = right_answers_of(e.at, p, granted_to(e.at));
        if (!in_range(right, smallest_result, largest_result)) continue;
        std::string const wrong = beyond(e, how, p, right, how == walks::in_chunks ? in_chunks : compared);
        if (!wrong.empty()) FAIL_CHECK(wrong);
      }
  CHECK(compared > 40000);
  CHECK(in_chunks > 3000);
}
