// A state handed over is a state kept: cuts anywhere, single steps, packed sequences, batches and threads change no bit.

#include "support/step_call.hpp"

using namespace palimpsa_test;
using palimpsa::sequential;

namespace {

template <class Storage>
void scan_into(rule_name rule, palimpsa::scan_inputs<Storage> const& in, palimpsa::scan_outputs<Storage> const& out, sequential how = {1}) {
  auto scratch = scratch_of(scan_workspace(rule, how, in));
  run_scan(rule, how, in, out, palimpsa::workspace(scratch));
}

/// A problem's sequence in pieces, the state handed from piece to piece in place.
template <class Storage>
results<Storage> in_pieces(call<Storage> const& c, problem const& p, std::vector<std::int64_t> const& lengths) {
  results<Storage> r = c.outputs(arrangement::padded);
  pool<Storage> state(p, p.sequences(), arrangement::transposed);
  std::int64_t first = 0;
  for (std::int64_t length : lengths) {
    auto in = tokens_of(c.in, first, length);
    in.initial_eta = state.eta, in.initial_evidence = state.evidence;
    scan_into<Storage>(p.rule, in, {narrow(r.out.view(), 1, first, length), narrow(r.out_variance.view(), 1, first, length), state.eta, state.evidence});
    first += length;
  }
  r.final_eta = std::move(state.eta), r.final_evidence = std::move(state.evidence);
  return r;
}

/// Random lengths that sum to T, some of them 0.
std::vector<std::int64_t> cut(dice& d, std::int64_t T) {
  std::vector<std::int64_t> lengths;
  while (T > 0) lengths.push_back(d.integer(0, T)), T -= lengths.back();
  lengths.push_back(0);
  return lengths;
}

template <class Storage>
void check_cuts() {
  std::uint64_t n = 1000;
  for (rule_name rule : every_rule<Storage>())
    for (int repeat = 0; repeat < 3; ++repeat) {
      ++n;
      problem const p = rounded<Storage>(draw(rule, any_sizes(n), n));
      INFO(p);
      dice d(p.seed);
      call<Storage> const c(p);
      CHECK(same_bits(c.run(), in_pieces(c, p, cut(d, p.sizes.T))));
    }
}

/// Steps of `length` tokens over a pool in which the states lie in reverse order.
template <class Storage>
void check_steps(std::int64_t length) {
  std::uint64_t n = 1100 + 100 * static_cast<std::uint64_t>(length);
  for (rule_name rule : every_rule<Storage>()) {
    if (!has_step<Storage>(rule)) continue;
    recipe r = any_sizes(++n);
    r.T = 12 * (r.T % 4);
    problem const p = rounded<Storage>(draw(rule, r, n));
    INFO(p);
    call<Storage> const c(p);
    results<Storage> const one = c.run();
    results<Storage> many = c.outputs();
    pool<Storage> states(p, r.B + 2, arrangement::padded);
    std::vector<std::int32_t> slots;
    for (std::int64_t b = 0; b < r.B; ++b) slots.push_back(static_cast<std::int32_t>(r.B + 1 - b)), states.fill(p, r.B + 1 - b, b);
    for (std::int64_t first = 0; first < r.T; first += length) {
      auto a = states.arguments(c);
      auto const part = tokens_of(c.in, first, length);
      a.q = part.q, a.k = part.k, a.v = part.v, a.beta = part.beta, a.log_decay = part.log_decay;
      a.out = narrow(many.out.view(), 1, first, length), a.out_variance = narrow(many.out_variance.view(), 1, first, length);
      a.slot_in = {slots.data(), r.B};
      auto scratch = scratch_of(step_workspace(rule, sequential{1}, a));
      run_step(rule, sequential{1}, a, palimpsa::workspace(scratch));
    }
    CHECK(many.out.bits() == one.out.bits());
    CHECK(many.out_variance.bits() == one.out_variance.bits());
    for (std::int64_t b = 0; b < r.B; ++b) {
      CHECK(slot_of(states.eta, slots[static_cast<std::size_t>(b)]) == slot_of(one.final_eta, b));
      if (rule.keeps_precision())
        CHECK(slot_of(states.evidence, slots[static_cast<std::size_t>(b)]) == slot_of(one.final_evidence, b));
    }
  }
}

}  // namespace

// Planted: states of a sequence loaded only when first tile; retained share applied from the second token on.
TEST_CASE("A sequence cut anywhere is one run, bit by bit") {
  check_cuts<double>();
  check_cuts<float>();
}

// Planted: a step that leaves its state before its last token.
TEST_CASE("n steps are one scan, bit by bit") {
  check_steps<double>(1);
  check_steps<double>(4);
  check_steps<float>(1);
}

// Planted: cu_seqlens shifted by one token; decay carried on from the sequence before.
TEST_CASE("Packed sequences are separate calls, and an empty one hands its state over unchanged") {
  std::uint64_t n = 1500;
  for (rule_name rule : every_rule<double>())
    for (std::vector<std::int64_t> const& lengths : {std::vector<std::int64_t>{0, 5, 1, 0, 0, 37, 2, 0}, {0, 0}, {1, 1, 1}, {33}}) {
      recipe r = any_sizes(++n);
      r.lengths = lengths;
      problem const p = draw(rule, r, n);
      INFO(p);
      call<double> const c(p);
      results<double> const packed = c.run(), separate = c.outputs();
      for (std::int64_t s = 0; s < p.sequences(); ++s) {
        std::int64_t const first = p.cu_seqlens[static_cast<std::size_t>(s)], length = p.cu_seqlens[static_cast<std::size_t>(s) + 1] - first;
        auto in = tokens_of(c.in, first, length);
        in.cu_seqlens = {};
        in.initial_eta = narrow(in.initial_eta, 0, s, 1), in.initial_evidence = narrow(in.initial_evidence, 0, s, 1);
        scan_into<double>(rule, in, {narrow(separate.out.view(), 1, first, length), narrow(separate.out_variance.view(), 1, first, length),
                                     narrow(separate.final_eta.view(), 0, s, 1), narrow(separate.final_evidence.view(), 0, s, 1)});
        if (length == 0) CHECK(slot_of(packed.final_eta, s) == slot_of(c.initial_eta, s));
        if (length == 0 && rule.keeps_precision()) CHECK(slot_of(packed.final_evidence, s) == slot_of(c.initial_evidence, s));
      }
      CHECK(same_bits(packed, separate));
    }
}

// Planted: scratch of one thread shared by two.
TEST_CASE("Threads, and what was in outputs and workspace, change no bit") {
  std::uint64_t n = 1700;
  for (kind write : every_kind) {
    recipe r = any_sizes(++n);
    r.B = 3, r.HK = 2, r.HV = 4;
    problem const p = rounded<float>(draw({write}, r, n));
    INFO(p);
    call<float> const c(p);
    results<float> const one = c.run(arrangement::contiguous, sequential{1});
    for (int threads : {2, 3, 8, 0}) CHECK(same_bits(one, c.run(arrangement::contiguous, sequential{threads})));

    results<float> again = c.outputs();
    std::vector<std::byte> zeros(scan_workspace({write}, sequential{1}, c.in));  // the runs above had NaNs
    run_scan({write}, sequential{1}, c.in, {again.out, again.out_variance, again.final_eta, again.final_evidence}, palimpsa::workspace(zeros));
    CHECK(same_bits(one, again));
    c.run(again);  // over finite results
    CHECK(same_bits(one, again));
  }
}

// Planted: a pack of rows that starts in the row before.
TEST_CASE("A batch row, and a head, alone are what they are in company") {
  std::uint64_t n = 1800;
  for (kind write : every_kind) {
    recipe r = any_sizes(++n);
    r.B = 3, r.HK = 2, r.HV = 4;
    problem const p = draw({write}, r, n);
    INFO(p);
    call<double> const c(p);
    results<double> const together = c.run(), alone = c.outputs();
    for (std::int64_t b = 0; b < r.B; ++b)
      for (std::int64_t h = 0; h < r.HV; ++h) {
        auto const of = [&](auto v, int head_axis, std::int64_t head) {
          return v.present() ? narrow(narrow(v, 0, b, 1), head_axis, head, 1) : v;
        };
        palimpsa::scan_inputs<double> in = c.in;
        in.q = of(in.q, 2, h / 2), in.k = of(in.k, 2, h / 2), in.v = of(in.v, 2, h);
        in.beta = of(in.beta, 2, h), in.log_decay = of(in.log_decay, 2, h);
        in.prior = narrow(in.prior, 0, h, 1);
        in.initial_eta = of(in.initial_eta, 1, h), in.initial_evidence = of(in.initial_evidence, 1, h);
        scan_into<double>({write}, in, {of(alone.out.view(), 2, h), of(alone.out_variance.view(), 2, h), of(alone.final_eta.view(), 1, h),
                                        of(alone.final_evidence.view(), 1, h)});
      }
    CHECK(same_bits(together, alone));
  }
}
