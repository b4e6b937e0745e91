// The kernels' arithmetic, tiles, lanes and memory accesses without a GPU: the host twin of every rule against the oracle.

#include "palimpsa/storage_eigen.hpp"
#include "palimpsa/validate_values.hpp"
#include "cuda/laid_out.hpp"
#include "cuda/twin.hpp"

using namespace palimpsa_test;

namespace {

palimpsa::scan_shape shape_of(problem const& p) {
  recipe const& s = p.sizes;
  return {s.B, s.T, s.HK, s.HV, s.K, s.V, p.sequences()};
}

/// Runs a problem's twin; returns the status word.
template <class Storage>
unsigned scan_twin(problem const& p, laid_out<placed, Storage> const& in, written<placed, Storage> const& out) {
  unsigned status = 0;
  run_twin(p.rule, kernel_problem(in.inputs(), out.outputs(), shape_of(p), &status));
  return status;
}

/// Runs and checks.
template <class Storage>
void check_twin(problem const& drawn, layout how = layout::aligned, layout state_how = layout::aligned, bool variance = true) {
  problem const p = as_stored<Storage>(drawn);
  INFO(p << ", tensors " << how << ", states " << state_how);
  laid_out<placed, Storage> const in(p, how, state_how, p.seed % 2 == 0 ? index_width::int32 : index_width::int64);
  written<placed, Storage> const out(p, how, state_how, variance);
  CHECK(scan_twin(p, in, out) == 0);
  check_scan(out, oracle(p), p);
}

}  // namespace

// Fault seen: row_of or key_of off by one; a tile that with_tile picks one K too late; padding not zeroed; the last part of a head's
// rows taken as whole.
TEST_CASE("Twin: every rule at every class of K, odd V") {
  std::uint64_t n = 0;
  for (rule_name rule : every_twin<float>())
    for (std::int64_t K : {1, 3, 9, 16, 32, 33, 64, 72, 80, 96, 100, 128, 136, 160, 192, 196, 255, 256}) {
      recipe r;
      r.B = 1, r.T = rule.keeps_full() ? 4 : 19, r.HK = 1, r.HV = 2, r.K = K, r.V = K % 2 == 0 ? 5 : 1;
      check_twin<float>(draw(rule, r, ++n));
    }
}

// Fault seen: a tile of rows flushed with the next tile's count; block_rows mistaken for rows.
TEST_CASE("Twin: every rule at every class of V and T") {
  std::uint64_t n = 100000;
  for (rule_name rule : every_twin<float>())
    for (auto [T, V] : {std::pair{1, 1}, {2, 15}, {7, 16}, {8, 17}, {9, 31}, {15, 32}, {16, 33}, {17, 64}, {33, 65}, {40, 2}}) {
      recipe r;
      r.T = T, r.V = V, r.K = V % 2 == 0 ? 12 : 35, r.HV = 2, r.HK = 2, r.B = 1;
      check_twin<float>(draw(rule, r, ++n));
    }
  recipe r;
  r.B = 1, r.T = 3, r.HK = r.HV = 1, r.K = 5, r.V = 256;
  check_twin<float>(draw({kind::palimpsa}, r, ++n));
}

// Fault seen: the key head of a group taken as head % HK; β of a channel taken from the head.
TEST_CASE("Twin: grouped heads, beta per head, per channel and absent, no gate, no initial state, no variance") {
  std::uint64_t n = 200000;
  for (rule_name rule : every_twin<float>())
    for (beta_shape beta : {beta_shape::absent, beta_shape::head, beta_shape::channel})
      for (bool gated : {false, true}) {
        recipe r;
        r.HK = 2, r.HV = gated ? 6 : 8, r.beta = beta, r.gated = gated, r.initial_state = gated, r.prior_per_key = !gated;
        check_twin<float>(draw(rule, r, ++n), layout::aligned, layout::aligned, gated);
      }
}

// Fault seen: 16-byte accesses taken where only the pointer, only the pitch or only the stride along the keys allows them.
TEST_CASE("Twin: every layout of tensors and states") {
  std::uint64_t n = 300000;
  for (rule_name rule : every_twin<float>())
    for (layout how : every_layout) {
      recipe r;
      r.B = 2, r.T = 5, r.K = n % 2 == 0 ? 24 : 40, r.V = 20;
      check_twin<float>(draw(rule, r, ++n), how, layout::aligned);
      check_twin<float>(draw(rule, r, ++n), layout::aligned, how);
    }
}

// Fault seen: a 16-bit tensor widened as the other type; storage's rounding truncated.
TEST_CASE("Twin: bfloat16 and half, every layout") {
  std::uint64_t n = 400000;
  for (layout how : every_layout) {
    recipe r;
    r.B = 1, r.T = 21, r.K = 48, r.V = 24;
    for (rule_name rule : every_twin<Eigen::bfloat16>()) check_twin<Eigen::bfloat16>(draw(rule, r, ++n), how);
    for (rule_name rule : every_twin<Eigen::half>()) check_twin<Eigen::half>(draw(rule, r, ++n), how);
  }
}

// Fault seen: a gate that multiplies after exp(-inf) became a NaN; a gate of 0 taken as absent. Unit gates stand between walls.
TEST_CASE("Twin: gates from 0 to -inf") {
  std::uint64_t n = 500000;
  double const wall = -std::numeric_limits<double>::infinity();
  for (rule_name rule : every_twin<float>())
    for (std::vector<double> const& gates : {std::vector<double>{0}, {wall}, {0, wall}, {-1000, 0, -88, -104}, {-1e-7, -1e-3}, {-3}}) {
      recipe r;
      r.B = 1, r.T = 37, r.log_decays = gates, r.K = 20, r.V = 6;
      check_twin<float>(draw(rule, r, ++n));
    }
}

// Fault seen: gates clamped at -80, whose exp(-80) is 1e-35.
TEST_CASE("Twin: nothing of the largest state passes a wall") {
  std::uint64_t n = 550000;
  for (rule_name rule : every_twin<float>())
    for (double wall : {-1000.0, -std::numeric_limits<double>::infinity()})
      if (rule.forget == gates::head || rule.forget == gates::key) check_twin<float>(behind_a_wall(rule, wall, ++n));
}

// Fault seen: an empty sequence that loses its state; a segment's first token taken as the row's.
TEST_CASE("Twin: packed sequences, empty ones in front, between and behind") {
  std::uint64_t n = 600000;
  for (rule_name rule : every_twin<float>())
    for (std::vector<std::int64_t> const& lengths :
         {std::vector<std::int64_t>{0, 3, 1, 0, 0, 40, 1, 0}, {16, 17, 15, 1}, {0}, {0, 0}, {1, 1, 1}}) {
      recipe r;
      r.lengths = lengths, r.K = 36, r.V = 9;
      check_twin<float>(draw(rule, r, ++n));
    }
}

// Fault seen: launching nothing for T = 0 and leaving final states unwritten.
TEST_CASE("Twin: no tokens and no batch") {
  std::uint64_t n = 700000;
  for (rule_name rule : every_twin<float>())
    for (auto [B, T] : {std::pair{2, 0}, {0, 3}, {0, 0}}) {
      recipe r;
      r.B = B, r.T = T;
      check_twin<float>(draw(rule, r, ++n));
    }
}

// Fault seen: squares of CG's residual over- or underflowing; a reciprocal beyond the range of rcp.approx.
TEST_CASE("Twin: tiny and huge keys and priors, repeated and one-hot keys") {
  std::uint64_t n = 800000;
  for (rule_name rule : every_twin<float>())
    for (double size : {1e-15, 1e-3, 1.0, 1e3, 1e15}) {
      if (rule.write == kind::delta && size > 1) continue;  // diverges for β kᵀk > 2, whoever calculates it
      recipe r;
      r.B = 1, r.T = 9, r.key_size = size, r.prior_size = size * size;
      r.repeated_keys = n % 2 == 0, r.one_hot_keys = n % 3 == 0;
      check_twin<float>(draw(rule, r, ++n));
    }
}
