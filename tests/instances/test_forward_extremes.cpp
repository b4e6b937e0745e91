// Every rule, forward, where sizes, gates, keys, priors and lengths are extreme.

#include "palimpsa/storage_eigen.hpp"
#include "support/call.hpp"

using namespace palimpsa_test;

namespace {

double const infinity = std::numeric_limits<double>::infinity();

template <class Storage> void check_one(kind write, recipe const& r, std::uint64_t n) {
  problem const p = rounded<Storage>(draw({write}, r, n));
  INFO(p);
  check_right(call<Storage>(p).run(), oracle(p), p);
}

template <class Storage> void check_kinds(recipe const& r, std::uint64_t n) {
  for (kind write : every_kind) check_one<Storage>(write, r, n);
}

}  // namespace

// Planted: a buffer of 128 keys; the remainder of K/4 dropped from a sum.
TEST_CASE("Every size from 1 to 256 that others stumble over is right") {
  std::int64_t const sizes[] = {1, 2, 3, 5, 9, 72, 80, 96, 136, 160, 192, 255, 256};
  std::uint64_t n = 100;
  for (std::size_t i = 0; i < std::size(sizes); ++i)
    for (std::size_t other : {i + 4, i + 9}) {
      recipe r;
      r.B = 1, r.T = 3, r.HK = 1, r.HV = 2, r.K = sizes[i], r.V = sizes[other % std::size(sizes)];
      check_kinds<double>(r, ++n);
      check_kinds<float>(r, n);
    }
}

// Planted: a gate clamped at -80; exp(a)·exp(-b) for exp(a-b); a gate of 0 read as masked.
TEST_CASE("Gates of one kind alone, and around the underflow of exp, are right") {
  std::uint64_t n = 200;
  for (std::vector<double> const& log_decays : {std::vector<double>{0},
                                                {-infinity},
                                                {-1000},
                                                {0, -infinity},
                                                {-87, -88, -103, -104, 0},
                                                {-700, -745, -746, 0},
                                                {-1e-30, -1e-9}}) {
    recipe r;
    r.log_decays = log_decays, r.T = 37;
    check_kinds<double>(r, ++n);
    check_kinds<float>(r, n);
  }
}

// Planted: 1/I² in place of (1/I)(μ/I); the prior in 16 bits.
TEST_CASE("Tiny and huge priors are right") {
  std::uint64_t n = 300;
  for (double size : {1e-20, 1e-8, 1e-3, 1e6, 1e20}) {
    recipe r;
    r.prior_size = size, r.T = 37;
    for (kind write : {kind::palimpsa, kind::diagonal_kalman})
      check_one<double>(write, r, ++n), check_one<float>(write, r, n);
    r.initial_state = false;  // R is the prior alone at first
    for (kind write : {kind::palimpsa, kind::diagonal_kalman})
      check_one<double>(write, r, ++n), check_one<float>(write, r, n);
  }
}

// Planted: a factorisation that goes on after a pivot which rounding made negative.
TEST_CASE("A solve that is singular to rounding stays finite, of the right size, and within its condition") {
  std::uint64_t n = 400;
  for (double size : {1e-4, 1e-6, 1e-8, 1e-12, 1e-20})
    for (std::int64_t T : {8, 40, 200}) {
      recipe r;
      r.B = 1, r.T = T, r.K = 24, r.prior_size = size, r.initial_state = false, r.repeated_keys = T == 40,
      r.log_decays = {0, -0.05};
      problem const p = rounded<float>(draw({kind::mesa_net}, r, ++n));
      INFO(p);
      right_values const right = oracle(p);
      double const error = relative_error(call<float>(p).run().out.values(), right.out);
      INFO("condition " << right.condition << ", relative error " << error);
      CHECK(error <= (std::min)(arithmetic_bound<float>(T, right.condition), 4.0));
    }
}

// A negative diagonal is refused (tests/core); off the diagonal it takes a factorisation to see.
TEST_CASE("Evidence that is no precision answers with NaN") {
  recipe r;
  r.B = 1, r.T = 2, r.K = 64;
  problem p = draw({kind::mesa_net}, r, 480);
  p.initial_evidence[3] = p.initial_evidence[3 * 64] = 50;  // J_03 = J_30 beyond √(J_00 J_33)
  for (double& x : p.log_decay) x = -0.05;
  results<float> const x = call<float>(p).run();
  CHECK(std::isnan(x.out.view()(0, 1, 0, 2)));
  CHECK(std::isfinite(x.out.view()(0, 1, 1, 2)));
}

// Planted: keys normalised behind the caller's back; k² in half the range.
TEST_CASE("Keys of size 1e-18 and 1e18 are right") {
  for (double size : {1e-18, 1e-6, 1e6, 1e18})
    for (kind write : every_kind) {
      if (write == kind::delta && size > 1) continue;  // the explicit step diverges for β kᵀk > 2
      recipe r;
      r.key_size = size, r.T = 37, r.scale = 1;
      if (write == kind::mesa_net) r.prior_size = size * size;  // the system of keys and prior keeps its condition
      check_one<double>(write, r, 500);
      check_one<float>(write, r, 501);
    }
}

TEST_CASE("Queries whose squares leave the range of float are read right where the variance does not") {
  for (double size : {1e-24, 1e24})
    for (kind write : {kind::palimpsa, kind::diagonal_kalman, kind::mesa_net}) {
      recipe r;
      r.T = 37, r.prior_size = size * size / 1e20, r.key_size = 1e-5 * size;  // variances of about 1e20
      if (size < 1) r.prior_size = 1e-30, r.key_size = 1e-15;                 // and of 1e-18
      problem p = draw({write}, r, 520);
      for (double& x : p.q) x *= size;
      p = rounded<float>(p);
      INFO(p);
      check_right(call<float>(p).run(), oracle(p), p);
    }
}

// Planted: state kept in bfloat16; J summed in float16.
TEST_CASE("Long sequences are right in float") {
  std::uint64_t n = 600;
  for (std::vector<double> const& log_decays : {std::vector<double>{0}, {-1e-3, -0.01}, {0, 0, 0, 0, 0, 0, 0, -3}}) {
    recipe r;
    r.B = 1, r.T = 2500, r.HK = r.HV = 1, r.K = 16, r.V = 5, r.log_decays = log_decays;
    check_kinds<float>(r, ++n);
  }
}

TEST_CASE("No tokens, no batch rows and no sequences are legal calls") {
  for (kind write : every_kind) {
    for (std::vector<std::int64_t> const& lengths : {std::vector<std::int64_t>{}, {0, 0, 0}})
      for (bool initial : {false, true}) {
        recipe r;
        r.T = 0, r.lengths = lengths, r.initial_state = initial;
        check_one<double>(write, r, 700);
      }
    recipe none;
    none.B = 0;
    check_one<double>(write, none, 701);

    // Tensors without elements may be null pointers: sequences of no tokens, and (cu_seqlens = {0}) no sequences.
    for (std::int64_t sequences : {1, 0}) {
      recipe empty;
      empty.B = 1, empty.T = 0;
      problem const p = draw({write}, empty, 702);
      call<double> c(p);
      std::int32_t const boundary[] = {0};
      if (sequences == 0) c.in.cu_seqlens = {boundary, 1};
      if (sequences == 0) c.in.initial_eta = c.in.initial_evidence = {};
      palimpsa::view<double const> const no_keys(nullptr, {1, 0, 2, 9}), no_values(nullptr, {1, 0, 4, 7}),
          no_heads(nullptr, {1, 0, 4});
      c.in.q = c.in.k = no_keys, c.in.v = no_values, c.in.beta = c.in.log_decay = no_heads;
      palimpsa::scan_outputs<double> out;
      out.out = palimpsa::view<double>(nullptr, {1, 0, 4, 7});
      results<double> kept = c.outputs();
      out.final_eta = palimpsa::view<double>(nullptr, {0, 4, 7, 9});
      if (sequences == 1) out.final_eta = kept.final_eta;
      auto scratch = scratch_of(scan_workspace({write}, {1}, c.in));
      CHECK_NOTHROW(run_scan({write}, {1}, c.in, out, palimpsa::workspace(scratch)));
      if (sequences == 1) CHECK(kept.final_eta.values() == p.initial_eta);
    }
  }
}
