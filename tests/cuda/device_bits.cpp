// The same bits on the GPU, whatever a sequence is cut into, whatever memory held before, however often it runs.

#include "cuda/device_call.hpp"

using namespace palimpsa_test;

namespace {

/// All that a call wrote, and the states it left.
template <class Storage>
std::vector<unsigned char> bits_of(gpu_outputs<Storage> const& out, moving_states<Storage> const& states) {
  std::vector<unsigned char> all = out.out.bits();
  for (on_device<float> const* x : {&out.out_variance, &states.eta, &states.evidence}) {
    std::vector<unsigned char> const more = x->bits();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

template <class Storage>
std::vector<unsigned char> bits_of(gpu_outputs<Storage> const& out) {
  return out.bits();
}

/// A scan over tokens [first, last), from and to the states that a run moves along.
template <class Storage>
void scan_part(problem const& p, gpu_inputs<Storage> const& in, gpu_outputs<Storage> const& out, moving_states<Storage> const& states,
               std::int64_t first, std::int64_t last) {
  palimpsa::scan_inputs<Storage> part = in.inputs();
  std::int64_t const B = p.sizes.B, n = last - first;
  part.q = cut(part.q, 0, B, first, n), part.k = cut(part.k, 0, B, first, n), part.v = cut(part.v, 0, B, first, n);
  part.beta = cut(part.beta, 0, B, first, n);
  if (p.rule.forget != gates::constant) part.log_decay = cut(part.log_decay, 0, B, first, n);
  part.initial_eta = states.eta.view(), part.initial_evidence = states.evidence.view();
  palimpsa::scan_outputs<Storage> const to{cut(out.out.view(), 0, B, first, n), cut(out.out_variance.view(), 0, B, first, n),
                                           states.eta.view(), states.evidence.view()};
  CHECK(gpu_scan(p.rule, part, to) == 0);
}

recipe two_rows(std::int64_t K) {
  recipe r;
  r.B = 2, r.T = 37, r.K = K, r.V = 9, r.HV = 4, r.HK = 2;
  return r;
}

}  // namespace

// Fault it catches: final states written where initial ones are still to be read; a tile that starts at the cut treats its first token
// differently; a state that passes through 16 bits.
TEST_CASE("GPU: a sequence cut anywhere is the sequence, in place, bit by bit") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 800000;
  each_storage([&]<class Storage>(Storage) {
    for (rule_name rule : gpu_rules<Storage>()) {
      problem const p = as_stored<Storage>(draw(rule, two_rows(rule.keeps_full() ? 20 : 40), ++n));
      dice d(p.seed);
      INFO(p << ", " << palimpsa::storage<Storage>::name);
      gpu_inputs<Storage> const in(p);
      gpu_outputs<Storage> const whole(p), parts(p);
      moving_states<Storage> const once(p), moved(p);
      scan_part(p, in, whole, once, 0, p.sizes.T);
      for (std::int64_t t = 0, next = 0; t < p.sizes.T; t = next) {
        next = (std::min)(p.sizes.T, t + d.integer(0, 17));
        scan_part(p, in, parts, moved, t, next);
      }
      CHECK(bits_of(parts, moved) == bits_of(whole, once));
    }
  });
}

// Fault it catches: the step's lanes other than the scan's, so that sums are taken in another order; a contraction on one path only.
TEST_CASE("GPU: steps of one token, of n tokens and a scan, bit by bit, for aligned states and for odd ones") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 900000;
  each_storage([&]<class Storage>(Storage) {
    for (rule_name rule : gpu_rules<Storage>())
      for (std::int64_t K : {7, 32, 48, 96, 104, 140, 200}) {
        if (rule.keeps_full() && K > 100) continue;  // the rows are Mamba2's, and its steps have been compared
        recipe r = two_rows(K);
        r.T = 6;
        problem const p = as_stored<Storage>(draw(rule, r, ++n));
        INFO(p << ", " << palimpsa::storage<Storage>::name);
        gpu_inputs<Storage> const in(p);
        gpu_outputs<Storage> const scanned(p);
        moving_states<Storage> const states(p);
        scan_part(p, in, scanned, states, 0, r.T);
        std::vector<unsigned char> const right = bits_of(scanned, states);
        for (layout how : {layout::aligned, layout::odd_pitch})
          for (std::int64_t count : {1, 2, 6}) {
            INFO("states " << how << ", " << count << " tokens a call");
            gpu_outputs<Storage> const out(p);
            moving_states<Storage> const moved(p, how);
            gpu_steps(p, in, out, moved, count);
            CHECK(bits_of(out, moved) == right);
          }
      }
  });
}

// Fault it catches: a race, an atomic sum of floats, an output element that is never written, a workspace that is read before.
TEST_CASE("GPU: 50 repeats over poisoned outputs and workspace give the same bits", "[sanitize]") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 1000000;
  each_storage([&]<class Storage>(Storage) {
    for (rule_name rule : gpu_rules<Storage>()) {
      problem const p = as_stored<Storage>(draw(rule, two_rows(40), ++n));
      INFO(p << ", " << palimpsa::storage<Storage>::name);
      gpu_inputs<Storage> const in(p);
      gpu_outputs<Storage> out(p);
      gpu_calls<Storage> const& calls = gpu_calls_of<Storage>(rule);
      device_bytes scratch(calls.scan_workspace({}, in.inputs()));
      std::vector<unsigned char> first;
      int different = 0;
      for (int i = 0; i < (few_rules() ? 3 : 50); ++i) {
        out.out.poison(), out.out_variance.poison(), out.final_eta.poison(), out.final_evidence.poison();
        if (scratch.size() > 0) scratch.poison();
        calls.scan({}, in.inputs(), out.outputs(), scratch);
        finish();
        std::vector<unsigned char> const bits = out.bits();
        if (first.empty()) first = bits;
        different += bits != first;
      }
      CHECK(different == 0);
      check_scan(out, oracle(p), p);
    }
  });
}

// Fault it catches: results that depend on how many heads run beside a head (a tile chosen by the load, parts a block walks).
TEST_CASE("GPU: a row of a batch is the row alone, bit by bit") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 1100000;
  for (rule_name rule : gpu_rules<float>()) {
    recipe r = two_rows(48);
    r.B = 120, r.T = 1, r.V = 70;  // enough heads for a block of the step to walk several parts of one
    problem const p = as_stored<float>(draw(rule, r, ++n));
    INFO(p);
    gpu_inputs<float> const in(p);
    gpu_outputs<float> const all(p);
    moving_states<float> const together(p);
    gpu_steps(p, in, all, together, 1);
    right_values const right = oracle(p);
    PALIMPSA_TEST_CLOSE("out", all.out.values(), right.out, read_bound(p, right));
    gpu_outputs<float> const alone(p);
    moving_states<float> const states(p);
    for (std::int64_t b = 0; b < r.B; ++b) {
      index_list<on_device> const slot({b}, index_width::int32);
      palimpsa::step_arguments<float> a = step_of(rule, in.inputs(), alone.outputs(), b, 1, 0, 1);
      a.eta = states.eta.view(), a.evidence = states.evidence.view(), a.slot_in = slot;
      gpu_step(rule, a);
    }
    CHECK(bits_of(alone, states) == bits_of(all, together));
  }
}
