// Every compiled rule and type on the GPU against the oracle: sizes, layouts, gates, packing, optional tensors.

#include "cuda/device_call.hpp"

using namespace palimpsa_test;

namespace {

/// Runs a drawn problem by scan and checks it.
template <class Storage>
void check(problem const& drawn, layout how = layout::aligned, layout state_how = layout::aligned, bool variance = true) {
  problem const p = as_stored<Storage>(drawn);
  INFO(p << ", " << palimpsa::storage<Storage>::name << ", tensors " << how << ", states " << state_how);
  gpu_inputs<Storage> const in(p, how, state_how, p.seed % 2 == 0 ? index_width::int32 : index_width::int64);
  gpu_outputs<Storage> const out(p, how, state_how, variance);
  CHECK(gpu_scan(p.rule, in, out) == 0);
  check_scan(out, oracle(p), p);
}

/// Calls f(rule, Storage) for all that is compiled.
template <class F>
void each_rule(F f) {
  each_storage([&]<class Storage>(Storage storage) {
    for (rule_name rule : gpu_rules<Storage>()) f(rule, storage);
  });
}

}  // namespace

// Fault it catches: a build that left out a unit, so that every other test ran over nothing.
TEST_CASE("GPU: every write is compiled in every type, and every axis in float32") {
  each_storage([]<class Storage>(Storage) {
    for (kind write : every_kind) CHECK(has_gpu<Storage>({write, gates::head, false}));
  });
  for (kind write : every_kind)
    if (write != kind::mesa_net) CHECK(has_gpu<float>({write, gates::key, false}));
  CHECK(has_gpu<float>({kind::delta, gates::none, false}));
  CHECK(has_gpu<float>({kind::mamba2, gates::constant, false}));
  CHECK(has_gpu<float>({kind::palimpsa, gates::head, true}));
}

// Fault it catches: a shuffle over half the lanes; padding that is not zero; K×K in device memory laid out as in shared memory.
TEST_CASE("GPU: every class of K, odd V") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 0;
  each_rule([&]<class Storage>(rule_name rule, Storage) {
    for (std::int64_t K : {1, 9, 16, 32, 33, 64, 72, 80, 96, 100, 128, 136, 160, 192, 255, 256}) {
      recipe r;
      r.B = 1, r.T = rule.keeps_full() ? 4 : 19, r.HK = 1, r.HV = 2, r.K = K, r.V = K % 2 == 0 ? 5 : 1;
      check<Storage>(draw(rule, r, ++n));
    }
  });
}

// Fault it catches: shared memory overwritten by a faster warp at a tile's end.
TEST_CASE("GPU: every class of V and T") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 100000;
  each_rule([&]<class Storage>(rule_name rule, Storage) {
    for (auto [T, V] : {std::pair{1, 1}, {1, 15}, {2, 1}, {7, 16}, {8, 17}, {9, 31}, {15, 32}, {16, 33}, {17, 64}, {33, 65}, {40, 2}}) {
      recipe r;
      r.T = T, r.V = V, r.K = V % 2 == 0 ? 12 : 35, r.HV = 2, r.HK = 2, r.B = 1;
      check<Storage>(draw(rule, r, ++n));
    }
  });
  recipe r;
  r.B = 1, r.T = 3, r.HK = r.HV = 1, r.K = 5, r.V = 256;
  check<float>(draw({kind::palimpsa, gates::head, false}, r, ++n));
}

// Fault it catches: 16-byte copies from an odd pointer (a misaligned address on the GPU, silent on the host); a K×V state transposed.
TEST_CASE("GPU: odd pointers, odd and wide pitches, swapped axes, negative strides, a state kept KxV", "[sanitize]") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 200000;
  each_rule([&]<class Storage>(rule_name rule, Storage) {
    for (layout how : every_layout) {
      recipe r;
      r.B = 2, r.T = 5, r.K = n % 2 == 0 ? 24 : 40, r.V = 20;
      check<Storage>(draw(rule, r, ++n), how, layout::aligned);
      check<Storage>(draw(rule, r, ++n), layout::aligned, how);
    }
  });
}

// Fault it catches: optional pointers dereferenced; β of a head read per channel; key head by modulo.
TEST_CASE("GPU: grouped heads, optional tensors absent in every combination") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 300000;
  each_rule([&]<class Storage>(rule_name rule, Storage) {
    for (beta_shape beta : {beta_shape::absent, beta_shape::head, beta_shape::channel})
      for (bool gated : {false, true})
        for (bool state : {false, true}) {
          recipe r;
          r.HK = 2, r.HV = gated ? 6 : 8, r.beta = beta, r.gated = gated, r.initial_state = state, r.prior_per_key = state;
          problem const p = as_stored<Storage>(draw(rule, r, ++n));
          INFO(p << ", " << palimpsa::storage<Storage>::name);
          gpu_outputs<Storage> out(p, layout::aligned, layout::aligned, !state);
          if (gated) out.final_eta = {};
          if (state) out.final_evidence = {};
          right_values right = oracle(p);
          if (gated) right.final_eta.clear();
          if (state) right.final_evidence.clear();
          CHECK(gpu_scan(rule, gpu_inputs<Storage>(p), out) == 0);
          check_scan(out, right, p);
        }
  });
}

// Fault it catches: exp of a difference of running sums; a gate of -inf times an infinity; a fast path for mild gates only.
TEST_CASE("GPU: gates from 0 to -inf, mixed") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 400000;
  double const wall = -std::numeric_limits<double>::infinity();
  each_rule([&]<class Storage>(rule_name rule, Storage) {
    for (std::vector<double> const& gates :
         {std::vector<double>{0}, {wall}, {0, wall}, {-1000, 0, -88, -104}, {-1e-7, -1e-3}, {-3}, {0, -0.05, -1, -20, -1000, wall}}) {
      recipe r;
      r.B = 1, r.T = 70, r.log_decays = gates, r.K = 20, r.V = 6;
      check<Storage>(draw(rule, r, ++n));
    }
  });
}

// Fault it catches: gates clamped at -80, whose exp(-80) is 1e-35.
TEST_CASE("GPU: nothing of the largest state passes a wall") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 450000;
  each_rule([&]<class Storage>(rule_name rule, Storage) {
    for (double wall : {-1000.0, -std::numeric_limits<double>::infinity()})
      if (rule.forget == gates::head || rule.forget == gates::key) check<Storage>(behind_a_wall(rule, wall, ++n));
  });
}

// Fault it catches: an empty sequence that loses its state; a segment that starts at its row's first token.
TEST_CASE("GPU: packed sequences, empty ones in front, between and behind", "[sanitize]") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 500000;
  each_rule([&]<class Storage>(rule_name rule, Storage) {
    for (std::vector<std::int64_t> const& lengths :
         {std::vector<std::int64_t>{0, 3, 1, 0, 0, 40, 1, 0}, {16, 17, 15, 1}, {0}, {0, 0}, {1, 1, 1}}) {
      recipe r;
      r.lengths = lengths, r.K = 36, r.V = 9;
      check<Storage>(draw(rule, r, ++n));
    }
  });
}

// Fault it catches: a launch of no blocks, whose error stays behind for the caller's next call.
TEST_CASE("GPU: no tokens and no batch") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 600000;
  each_rule([&]<class Storage>(rule_name rule, Storage) {
    for (auto [B, T] : {std::pair{2, 0}, {0, 3}, {0, 0}}) {
      recipe r;
      r.B = B, r.T = T;
      problem const p = as_stored<Storage>(draw(rule, r, ++n));
      check<Storage>(p);
      pool_plan const in_place{B + 1, {}, {}};
      gpu_pool<Storage> const pool(p, in_place);
      CHECK(gpu_step(rule, pool.arguments()) == 0);
      check_pool("eta", pool_of(p.initial_eta, r.HV * r.V * r.K, B, in_place), pool.eta.values(),
                 std::vector<numbers>(static_cast<std::size_t>(B + 1)), 0);
    }
  });
}

// Fault it catches: rcp.approx beyond its range; squares of CG's residual that vanish.
TEST_CASE("GPU: tiny and huge keys and priors, repeated and one-hot keys") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 700000;
  for (rule_name rule : gpu_rules<float>())
    for (double size : {1e-15, 1e-3, 1.0, 1e3, 1e15}) {
      if (rule.write == kind::delta && size > 1) continue;  // diverges for β kᵀk > 2, whoever calculates it
      recipe r;
      r.B = 1, r.T = 9, r.key_size = size, r.prior_size = size * size;
      r.repeated_keys = n % 2 == 0, r.one_hot_keys = n % 3 == 0;
      check<float>(draw(rule, r, ++n));
    }
}
