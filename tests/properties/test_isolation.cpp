// A NaN stays where it came in: in its sequence, from its token on, in its heads, and a value's in its row.

#include <functional>

#include "support/call.hpp"

using namespace palimpsa_test;

namespace {

double const not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Which results may differ from those of the clean call, and which must.
struct reach {
  std::function<bool(std::int64_t sequence, std::int64_t token, std::int64_t head, std::int64_t row)> out;
  std::function<bool(std::int64_t sequence, std::int64_t head, std::int64_t row)> state;
};

/// The sequence that token t of batch row b belongs to.
std::int64_t sequence_of(problem const& p, std::int64_t b, std::int64_t t) {
  if (p.cu_seqlens.empty()) return b;
  std::int64_t n = 0;
  while (p.cu_seqlens[static_cast<std::size_t>(n) + 1] <= t) ++n;
  return n;
}

/// How many elements outside the reach differ, and how many inside are not NaN.
struct verdict {
  int leaked = 0, missing = 0;
};

bool differs(double x, double clean) { return !(x == clean) && !(std::isnan(x) && std::isnan(clean)); }

verdict judge_out(problem const& p, numbers const& x, numbers const& clean, reach const& r) {
  recipe const& s = p.sizes;
  verdict v;
  for (std::size_t c = 0; c < x.size(); ++c) {
    std::int64_t const i = static_cast<std::int64_t>(c) % s.V, h = static_cast<std::int64_t>(c) / s.V % s.HV;
    std::int64_t const t = static_cast<std::int64_t>(c) / (s.V * s.HV) % s.T,
                       b = static_cast<std::int64_t>(c) / (s.V * s.HV * s.T);
    bool const reached = r.out(sequence_of(p, b, t), t, h, i);
    v.leaked += !reached && differs(x[c], clean[c]);
    v.missing += reached && !std::isnan(x[c]);
  }
  return v;
}

int leaks_into_state(problem const& p, numbers const& x, numbers const& clean, std::int64_t rows, reach const& r,
                     bool shared) {
  recipe const& s = p.sizes;
  int leaked = 0;
  for (std::size_t c = 0; c < x.size(); ++c) {
    std::int64_t const row = static_cast<std::int64_t>(c) / s.K, i = row % rows, h = row / rows % s.HV,
                       n = row / (rows * s.HV);
    bool reached = r.state(n, h, i);
    if (shared && !reached)  // a head's matrix is reached where all its rows are
      reached = r.state(n, h, 0) && r.state(n, h, s.V - 1) && s.V > 1;
    leaked += !reached && differs(x[c], clean[c]);
  }
  return leaked;
}

/// Runs p with a NaN planted and compares with the clean run.
void check(problem const& p, std::function<void(problem&)> plant, reach const& r) {
  problem dirty = p;
  plant(dirty);
  auto const clean = call<double>(p).run(), x = call<double>(dirty).run();
  verdict const v = judge_out(p, x.out.values(), clean.out.values(), r);
  CHECK(v.leaked == 0);
  CHECK(v.missing == 0);
  CHECK(leaks_into_state(p, x.final_eta.values(), clean.final_eta.values(), p.sizes.V, r, false) == 0);
  CHECK(leaks_into_state(p, x.final_evidence.values(), clean.final_evidence.values(), p.evidence_rows(), r,
                         p.rule.keeps_full()) == 0);
}

/// Sizes of several heads, rows beyond one pack, and two or more sequences.
problem draw_company(rule_name rule, bool packed, std::uint64_t n) {
  recipe r;
  r.B = 2, r.T = 40, r.HK = 2, r.HV = 4, r.K = 5, r.V = 21;
  if (packed) r.lengths = {17, 0, 20, 9};
  r.log_decays = {0, -0.05, -1, -std::numeric_limits<double>::infinity()};
  return draw(rule, r, n);
}

struct place {
  std::int64_t b, t, h, i;  ///< h: a value head
};

std::size_t token_at(problem const& p, place at) { return static_cast<std::size_t>(at.b * p.sizes.T + at.t); }

}  // namespace

// Planted: a lane's value added to its neighbour's; tail lanes of a pack stored to the next row.
TEST_CASE("A NaN value reaches its own row only") {
  std::uint64_t n = 3000;
  for (rule_name rule : every_rule<double>())
    for (bool packed : {false, true})
      for (std::int64_t row : {7, 20}) {  // amid a pack, and the last
        problem const p = draw_company(rule, packed, ++n);
        INFO(p << ", row " << row);
        place const at{packed ? 0 : 1, 19, 2, row};
        std::int64_t const sequence = sequence_of(p, at.b, at.t);
        std::size_t const cell = (token_at(p, at) * 4 + 2) * 21 + static_cast<std::size_t>(row);
        reach const r{
            [&](auto s, auto t, auto h, auto i) { return s == sequence && t >= at.t && h == at.h && i == at.i; },
            [&](auto s, auto h, auto i) { return s == sequence && h == at.h && i == at.i; }};
        check(
            p, [&](problem& d) { d.v[cell] = not_a_number; }, r);
        bool const beta_counts = !(rule.write == kind::mamba2 && rule.preweighted);
        if (!rule.keeps_full() && beta_counts)
          check(
              p, [&](problem& d) { d.beta[cell] = not_a_number; }, r);
      }
}

TEST_CASE("A NaN key or gate reaches its own heads, a NaN query its own token") {
  std::uint64_t n = 3200;
  for (rule_name rule : every_rule<double>())
    for (bool packed : {false, true}) {
      problem const p = draw_company(rule, packed, ++n);
      INFO(p);
      place const at{packed ? 0 : 1, 19, 2, 0};  // value head 2 reads key head 1, as does head 3
      std::int64_t const sequence = sequence_of(p, at.b, at.t);
      std::size_t const token = token_at(p, at);
      reach const group{[&](auto s, auto t, auto h, auto) { return s == sequence && t >= at.t && h >= 2; },
                        [&](auto s, auto h, auto) { return s == sequence && h >= 2; }};
      for (std::size_t j : {std::size_t{0}, std::size_t{4}})  // NaN·0 elsewhere must not hide it: all of k
        check(
            p, [&](problem& d) { d.k[(token * 2 + 1) * 5 + j] = not_a_number; }, group);
      reach const query{[&](auto, auto t, auto h, auto) { return t == at.t && h >= 2; },
                        [](auto, auto, auto) { return false; }};
      if (!packed)
        check(p, [&](problem& d) { d.q[(token * 2 + 1) * 5 + 3] = not_a_number; },
              {[&](auto s, auto t, auto h, auto i) { return s == sequence && query.out(s, t, h, i); }, query.state});
      if (rule.forget != gates::head) continue;
      reach const head{[&](auto s, auto t, auto h, auto) { return s == sequence && t >= at.t && h == 2; },
                       [&](auto s, auto h, auto) { return s == sequence && h == 2; }};
      check(
          p, [&](problem& d) { d.log_decay[token * 4 + 2] = not_a_number; }, head);
    }
}

TEST_CASE("A NaN in an initial state reaches its own head of its own sequence") {
  std::uint64_t n = 3400;
  for (rule_name rule : every_rule<double>()) {
    problem const p = draw_company(rule, true, ++n);
    INFO(p);
    // Sequence 2, head 1, row 7. Key 0 is read by every query, so every output of the row is reached.
    reach const row{[](auto s, auto, auto h, auto i) { return s == 2 && h == 1 && i == 7; },
                    [](auto s, auto h, auto i) { return s == 2 && h == 1 && i == 7; }};
    check(
        p, [&](problem& d) { d.initial_eta[static_cast<std::size_t>(((2 * 4 + 1) * 21 + 7) * 5)] = not_a_number; },
        row);
    if (rule.keeps_diagonal())
      check(
          p,
          [&](problem& d) { d.initial_evidence[static_cast<std::size_t>(((2 * 4 + 1) * 21 + 7) * 5)] = not_a_number; },
          row);
    if (rule.keeps_full()) {
      reach const head{[](auto s, auto, auto h, auto) { return s == 2 && h == 1; },
                       [](auto s, auto h, auto) { return s == 2 && h == 1; }};
      check(
          p, [&](problem& d) { d.initial_evidence[static_cast<std::size_t>((2 * 4 + 1) * 25)] = not_a_number; }, head);
    }
  }
}
