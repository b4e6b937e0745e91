// One token for each row of a batch, states in a pool: slots, inert rows, snapshots, forks, and what is refused.

#include <sys/mman.h>
#include <unistd.h>

#include "palimpsa/error.hpp"
#include "support/step_call.hpp"

using namespace palimpsa_test;
using palimpsa::sequential;

namespace {

kind const kinds[] = {kind::palimpsa, kind::longhorn, kind::mesa_net};

/// B rows of n tokens each, one state a row.
problem draw_rows(kind write, std::int64_t B, std::int64_t n, std::uint64_t seed) {
  recipe r;
  r.B = B, r.T = n, r.HK = 1, r.HV = 2, r.K = 6, r.V = 5;
  r.log_decays = {0, -0.05, -1};
  return draw({write}, r, seed);
}

/// A step over a problem's rows and a pool.
struct bench {
  problem p;
  call<double> c;
  pool<double> states;
  results<double> x;
  palimpsa::step_arguments<double> a;

  bench(kind write, std::int64_t B, std::int64_t n, std::int64_t slots, std::uint64_t seed,
        arrangement how = arrangement::contiguous)
      : p(draw_rows(write, B, n, seed)), c(p), states(p, slots, how), x(c.outputs(how)), a(states.arguments(c)) {
    a.out = x.out, a.out_variance = x.out_variance;
  }

  void run() {
    auto scratch = scratch_of(step_workspace(p.rule, sequential{1}, a));
    run_step(p.rule, sequential{1}, a, palimpsa::workspace(scratch));
  }

  /// Whether row b wrote what a scan of the first n tokens of sequence s answers.
  bool answers_like(results<double> const& scan, std::int64_t b, std::int64_t s) const {
    return slot_of(x.out, b) == slot_of(scan.out, s) &&
           (!p.rule.keeps_precision() || slot_of(x.out_variance, b) == slot_of(scan.out_variance, s));
  }
  bool slot_is(std::int64_t slot, results<double> const& scan, std::int64_t s) const {
    return slot_of(states.eta, slot) == slot_of(scan.final_eta, s) &&
           (!p.rule.keeps_precision() || slot_of(states.evidence, slot) == slot_of(scan.final_evidence, s));
  }
  bool slot_is_nan(std::int64_t slot) const {
    auto const all_nan = [](numbers const& v) {
      return std::all_of(v.begin(), v.end(), [](double y) { return std::isnan(y); });
    };
    return all_nan(slot_of(states.eta, slot)) && (!p.rule.keeps_precision() || all_nan(slot_of(states.evidence, slot)));
  }
  std::string message() {
    std::string text = "no exception";
    auto const eta = states.eta.bits(), evidence = states.evidence.bits();
    try {
      run();
    } catch (palimpsa::argument_error const& e) {
      text = e.what();
    }
    CHECK(x.still_poisoned());
    CHECK((eta == states.eta.bits() && evidence == states.evidence.bits()));
    return text;
  }
};

/// Results of the tokens before `n` of every row.
results<double> scan_prefix(call<double> const& c, std::int64_t n) {
  results<double> r = c.outputs();
  auto const in = tokens_of(c.in, 0, n);
  auto scratch = scratch_of(scan_workspace(c.rule, sequential{1}, in));
  run_scan(c.rule, sequential{1}, in,
           {narrow(r.out.view(), 1, 0, n), narrow(r.out_variance.view(), 1, 0, n), r.final_eta, r.final_evidence},
           palimpsa::workspace(scratch));
  return r;
}

/// Memory that must not be touched.
class forbidden {
 public:
  explicit forbidden(std::size_t size)
      : size_(size), base_(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~forbidden() { munmap(base_, size_); }
  forbidden(forbidden const&) = delete;
  double* data() const { return static_cast<double*>(base_); }

 private:
  std::size_t size_;
  void* base_;
};

}  // namespace

// Planted: slot numbers read as int32 whatever their type; row number in place of slot number.
TEST_CASE("States are read and written where the slots say, the rest of the pool untouched") {
  for (kind write : kinds)
    for (arrangement how : every_arrangement)
      for (bool wide : {false, true}) {
        bench s(write, 3, 2, 8, 50, how);
        INFO(s.p << ", " << how << (wide ? ", int64" : ", int32"));
        results<double> const scan = s.c.run();
        std::int64_t const in64[] = {2, 0, 1}, out64[] = {5, 0, 7};
        std::int32_t const in32[] = {2, 0, 1}, out32[] = {5, 0, 7};
        for (std::int64_t b = 0; b < 3; ++b) s.states.fill(s.p, in64[b], b);
        auto const before1 = slot_of(s.states.eta, 1), before2 = slot_of(s.states.eta, 2);
        if (wide) s.a.slot_in = {in64, 3}, s.a.slot_out = {out64, 3};
        if (!wide) s.a.slot_in = {in32, 3}, s.a.slot_out = {out32, 3};
        s.run();
        for (std::int64_t b = 0; b < 3; ++b) CHECK((s.answers_like(scan, b, b) && s.slot_is(out64[b], scan, b)));
        for (std::int64_t slot : {3, 4, 6}) CHECK(s.slot_is_nan(slot));
        CHECK((slot_of(s.states.eta, 1) == before1 && slot_of(s.states.eta, 2) == before2));
        CHECK((s.states.eta.gaps_untouched() && s.states.evidence.gaps_untouched() && s.x.gaps_untouched()));
      }
}

TEST_CASE("Without slot lists row b uses slot b, in place") {
  for (kind write : kinds) {
    bench s(write, 3, 2, 5, 51);
    s.run();
    for (std::int64_t b = 0; b < 3; ++b) CHECK((s.answers_like(s.c.run(), b, b) && s.slot_is(b, s.c.run(), b)));
    CHECK((s.slot_is_nan(3) && s.slot_is_nan(4)));
  }
}

// Planted: inert rows left as they were; their output multiplied by zero; their state read before the test.
TEST_CASE("An inert row answers zero and touches no state") {
  for (kind write : kinds) {
    bench s(write, 3, 2, 3, 52);
    INFO(s.p);
    results<double> const scan = s.c.run();
    std::int32_t const in[] = {-1, 1, -1}, out[] = {0, 1, 2};  // what an inert row would write does not matter
    s.a.slot_in = {in, 3}, s.a.slot_out = {out, 3};
    s.states.eta.poison(), s.states.evidence.poison();
    s.states.fill(s.p, 1, 1);
    for (std::int64_t j = 0; j < 6; ++j) s.c.k.view()(0, 0, 0, j) = s.c.q.view()(2, 1, 0, j) = std::nan("");
    s.run();
    CHECK((s.answers_like(scan, 1, 1) && s.slot_is(1, scan, 1)));
    for (std::int64_t b : {0, 2}) {
      CHECK(slot_of(s.x.out, b) == numbers(2 * 2 * 5, 0));
      if (s.p.rule.keeps_precision()) CHECK(slot_of(s.x.out_variance, b) == numbers(2 * 2 * 5, 0));
      CHECK(s.slot_is_nan(b));
    }

    bench idle(write, 2, 1, 4, 53);
    forbidden const eta(1 << 16), evidence(1 << 16);
    idle.a.eta.data = eta.data();
    if (idle.p.rule.keeps_precision()) idle.a.evidence.data = evidence.data();
    std::int64_t const none[] = {-1, -1};
    idle.a.slot_in = {none, 2};
    idle.run();
    CHECK(idle.x.out.values() == numbers(2 * 2 * 5, 0));
  }
}

// Planted: a snapshot taken before the token; the snapshots of one tile only.
TEST_CASE("Snapshots leave the state after each token") {
  for (kind write : kinds) {
    std::int64_t const n = 40;  // more than a tile
    bench s(write, 2, n, 2 * n + 2, 54);
    INFO(s.p);
    std::vector<std::int64_t> slots;
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t t = 0; t < n; ++t) slots.push_back(t % 3 == 1 ? -1 : 2 + b * n + (n - 1 - t));
    s.a.slot_out = {slots.data(), 2, n};
    auto const initial = s.states.eta.bits();
    s.run();
    for (std::int64_t t = 0; t < n; ++t) {
      results<double> const prefix = scan_prefix(s.c, t + 1);
      for (std::int64_t b = 0; b < 2; ++b) {
        std::int64_t const slot = 2 + b * n + (n - 1 - t);
        CHECK((t % 3 == 1 ? s.slot_is_nan(slot) : s.slot_is(slot, prefix, b)));
      }
    }
    CHECK(std::equal(initial.begin(), initial.begin() + 2 * 2 * 5 * 6 * 8, s.states.eta.bits().begin()));
    CHECK(s.answers_like(s.c.run(), 1, 1));
  }
}

TEST_CASE("Two rows may read one slot: a fork") {
  for (kind write : kinds) {
    bench s(write, 2, 2, 3, 55);
    recipe r = s.p.sizes;
    problem twice = s.p;  // both sequences start from the state of the first
    for (numbers* x : {&twice.initial_eta, &twice.initial_evidence})
      std::copy(x->begin(), x->begin() + static_cast<std::ptrdiff_t>(x->size() / 2),
                x->begin() + static_cast<std::ptrdiff_t>(x->size() / 2));
    results<double> const scan = call<double>(twice).run();
    std::int32_t const in[] = {0, 0}, out[] = {1, 2};
    s.a.slot_in = {in, 2}, s.a.slot_out = {out, 2};
    s.run();
    for (std::int64_t b = 0; b < r.B; ++b) CHECK((s.answers_like(scan, b, b) && s.slot_is(b + 1, scan, b)));
  }
}

// Against: the state of an empty step copied from slot to slot.
TEST_CASE("A step of no tokens writes nothing") {
  for (kind write : kinds) {
    bench s(write, 2, 0, 4, 56);
    std::int32_t const in[] = {1, 0}, out[] = {2, 3};
    s.a.slot_in = {in, 2}, s.a.slot_out = {out, 2};
    auto const eta = s.states.eta.bits(), evidence = s.states.evidence.bits();
    s.run();
    CHECK((eta == s.states.eta.bits() && evidence == s.states.evidence.bits()));
  }
  bench none(kind::palimpsa, 0, 1, 2, 57);
  CHECK_NOTHROW(none.run());
}

// Planted: writers compared by row and not by slot; inert rows counted as writers.
TEST_CASE("A slot written twice, or read by one row and written by another, is refused") {
  auto const refused = [](std::initializer_list<std::int32_t> in, std::initializer_list<std::int32_t> out) {
    bench s(kind::palimpsa, 3, 1, 6, 58);
    std::vector<std::int32_t> const in_list(in), out_list(out);
    s.a.slot_in = {in_list.data(), 3};
    if (out_list.size() == 3) s.a.slot_out = {out_list.data(), 3};
    return s.message();
  };
  CHECK_THAT(
      refused({0, 1, 2}, {3, 4, 3}),
      contains(
          "slot_out[2]: expected a slot that nothing else in the call writes, given slot 3, also written by row 0"));
  CHECK_THAT(
      refused({1, 2, 1}, {}),
      contains(
          "slot_out[2]: expected a slot that nothing else in the call writes, given slot 1, also written by row 0"));
  CHECK_THAT(refused({0, 1, 2}, {3, 0, 4}),
             contains("slot_out[1]: expected a slot that no other row reads, given slot 0, read by row 0"));
  CHECK_THAT(refused({0, 6, 2}, {3, 4, 5}), contains("slot_in[1]: expected -1 or a slot below 6, given 6"));
  CHECK_THAT(refused({0, -2, 2}, {3, 4, 5}), contains("slot_in[1]: expected -1 or a slot below 6, given -2"));
  CHECK_THAT(refused({0, 1, 2}, {3, 4, 99}), contains("slot_out[2]: expected -1 or a slot below 6, given 99"));
  CHECK_THAT(refused({0, 1, 2}, {3, -7, 4}), contains("slot_out[1]: expected -1 or a slot below 6, given -7"));

  bench snapshots(kind::palimpsa, 1, 3, 6, 59);
  std::int64_t const repeated[] = {4, 5, 4}, far[] = {4, 6, 5};
  snapshots.a.slot_out = {repeated, 1, 3};
  CHECK_THAT(snapshots.message(),
             contains("slot_out[0]: expected a slot that nothing else in the call writes, given slot 4"));
  snapshots.a.slot_out = {far, 1, 3};
  CHECK_THAT(snapshots.message(), contains("slot_out[0]: expected -1 or a slot below 6, given 6"));

  bench empty(kind::palimpsa, 1, 0, 2, 60);  // without tokens slots are checked all the same
  std::int64_t const outside[] = {5};
  empty.a.slot_in = {outside, 1};
  CHECK_THAT(empty.message(), contains("slot_in[0]: expected -1 or a slot below 2, given 5"));

  // Not refused: rows in place, rows not kept, inert rows that share a slot.
  bench fine(kind::palimpsa, 3, 1, 6, 61);
  std::int32_t const in[] = {0, -1, -1}, out[] = {0, 0, 0};
  fine.a.slot_in = {in, 3}, fine.a.slot_out = {out, 3};
  CHECK_NOTHROW(fine.run());
  std::int32_t const three[] = {0, 1, 2}, dropped[] = {-1, 1, -1};
  fine.a.slot_in = {three, 3}, fine.a.slot_out = {dropped, 3};
  CHECK_NOTHROW(fine.run());
}
