// Pools, hostile device memory and sizes beyond 32 bits on the GPU.

#include "cuda/device_call.hpp"
#include "cuda/hostile.hpp"

using namespace palimpsa_test;
namespace found = palimpsa::cuda;

namespace {

recipe four_rows(std::int64_t tokens) {
  recipe r;
  r.B = 4, r.T = tokens, r.K = 12, r.V = 11;
  return r;
}

/// Bytes free on the current device.
std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  expect(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

}  // namespace

// Fault it catches: a stale slot multiplied by zero; -1 taken as the last slot; a snapshot written one token late; an output of an
// inert row left unwritten.
TEST_CASE("GPU: steps over every kind of slots, in every layout", "[sanitize]") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 1200000;
  each_storage([&]<class Storage>(Storage) {
    for (rule_name rule : gpu_rules<Storage>())
      for (std::int64_t tokens : {1, 3})
        for (pool_plan const& plan : pool_plans(tokens)) {
          problem const p = with_shared_states(as_stored<Storage>(draw(rule, four_rows(tokens), ++n)), plan);
          dice d(p.seed);
          layout const how = d.pick(every_layout), state_how = n % 2 == 0 ? layout::aligned : d.pick(every_layout);
          INFO(p << ", " << palimpsa::storage<Storage>::name << ", " << plan << ", tensors " << how << ", states " << state_how);
          gpu_pool<Storage> const x(p, plan, how, state_how, n % 2 == 0 ? index_width::int32 : index_width::int64, n % 3 != 0);
          CHECK(gpu_step(rule, x.arguments()) == 0);
          check_step(x, p, plan);
        }
  });
}

// Fault it catches: a bad slot used, or written as slot 0, or not flagged, or flagged by a read out of bounds.
TEST_CASE("GPU: slots out of range are inert and flagged", "[sanitize]") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 1300000;
  for (rule_name rule : gpu_rules<float>())
    for (pool_plan const& plan : hostile_plans())
      for (layout how : {layout::aligned, layout::odd_pitch}) {
        problem const p = as_stored<float>(draw(rule, four_rows(2), ++n));
        INFO(p << ", " << plan << ", states " << how);
        gpu_pool<float> const x(p, plan, layout::aligned, how, n % 2 == 0 ? index_width::int32 : index_width::int64);
        CHECK(gpu_step(rule, x.arguments()) == found::bad_slot);
        check_step(x, p, plan);
      }
}

// Fault it catches: a falling segment run with its length modulo 2³², or backwards; the last boundary not compared with T.
TEST_CASE("GPU: boundaries that fall or leave the tokens are empty and flagged", "[sanitize]") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 1400000;
  for (rule_name rule : gpu_rules<float>())
    for (std::vector<std::int64_t> const& boundaries : hostile_boundaries())
      for (index_width width : {index_width::int32, index_width::int64}) {
        problem const p = as_stored<float>(hostile_problem(rule, boundaries, ++n));
        INFO(p);
        gpu_inputs<float> const in(p, layout::aligned, layout::aligned, width);
        gpu_outputs<float> const out(p);
        CHECK(gpu_scan(rule, in, out) == found::bad_segment);
        check_hostile(out, p);
      }
}

// Fault it catches: only the first block's gates looked at; a NaN prior not flagged.
TEST_CASE("GPU: a gate above 0 and a prior not above 0 are flagged, wherever they are") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 1500000;
  for (rule_name rule : gpu_rules<float>())
    for (bool pool : {false, true}) {
      problem p = draw(rule, four_rows(3), ++n);
      unsigned expected = 0;
      if (!p.log_decay.empty()) p.log_decay.back() = 0.25, expected |= found::positive_gate;
      if (!p.prior.empty()) p.prior.back() = n % 2 == 0 ? 0 : std::numeric_limits<double>::quiet_NaN(), expected |= found::bad_prior;
      p = as_stored<float>(p);
      INFO(p << (pool ? ", step" : ", scan"));
      if (pool)
        CHECK(gpu_step(rule, gpu_pool<float>(p, {4, {}, {}}).arguments()) == expected);
      else
        CHECK(gpu_scan(rule, gpu_inputs<float>(p), gpu_outputs<float>(p)) == expected);
    }
}

// Fault it catches: a NaN that reaches another head or sequence through shared memory, a zero mask, or a sum over a warp.
TEST_CASE("GPU: a NaN stays in its own sequence and head") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 1600000;
  for (rule_name rule : gpu_rules<float>()) {
    recipe r;
    r.lengths = {5, 6, 7}, r.HK = r.HV = 2, r.K = 20, r.V = 9;
    problem p = draw(rule, r, ++n);
    std::size_t const token = 7;  // of sequence 1
    p.k[(token * 2 + 1) * 20 + 3] = std::numeric_limits<double>::quiet_NaN();
    p = as_stored<float>(p);
    INFO(p);
    gpu_outputs<float> const out(p);
    CHECK(gpu_scan(rule, gpu_inputs<float>(p), out) == 0);
    numbers const x = out.out.values();
    int wrong = 0;
    for (std::size_t t = 0; t < 18; ++t)
      for (std::size_t h = 0; h < 2; ++h)
        for (std::size_t i = 0; i < 9; ++i) wrong += std::isnan(x[(t * 2 + h) * 9 + i]) && !(h == 1 && t >= token && t < 11);
    CHECK(wrong == 0);
    CHECK(std::isnan(x[(token * 2 + 1) * 9]));
  }
}

// Fault it catches: offsets in 32 bits: slot · stride, token · stride and head · stride each pass 2³¹ elements.
TEST_CASE("GPU: beyond 2^31 elements through strides") {
  PALIMPSA_TEST_NEEDS_GPU();
  constexpr std::int64_t far = (std::int64_t{1} << 31) + 8;  // elements; 8.6 GB of floats
  if (free_bytes() < std::size_t{22} << 30) SKIP("less than 22 GiB free on this GPU");
  device_bytes const field(static_cast<std::size_t>(2 * far + 4096) * sizeof(float));
  auto* const base = static_cast<float*>(field.data());
  std::uint64_t n = 1700000;
  for (rule_name rule : one_of_each_write<float>())
    for (int axis : {0, 1, 2}) {
      recipe r;
      r.B = axis == 0 ? 2 : 1, r.T = axis == 1 ? 2 : 1, r.HK = r.HV = axis == 2 ? 2 : 1, r.K = 8, r.V = 4, r.initial_state = false;
      problem const p = as_stored<float>(draw(rule, r, ++n));
      INFO(p << ", axis " << axis << " is long");
      gpu_inputs<float> const in(p);
      gpu_outputs<float> const out(p);
      palimpsa::scan_inputs<float> far_in = in.inputs();
      palimpsa::scan_outputs<float> far_out = out.outputs();
      std::int64_t place = 0;
      auto const copy = [](float* to, float const* from, std::int64_t count) {
        expect(cudaMemcpy(to, from, static_cast<std::size_t>(count) * sizeof(float), cudaMemcpyDeviceToDevice), "cudaMemcpy");
      };
      // All extents before the channels are 1 but along `axis`, where there are two runs of channels: one at each end of the field.
      auto const spread = [&]<class T>(palimpsa::view<T>& v, int ends) {
        std::int64_t const run = v.rank > 3 ? v.extent[3] : 1, step = v.stride[axis];
        for (int end = 0; end < ends; ++end) copy(base + place + end * far, v.data + end * step, run);
        v.data = base + place, v.stride[axis] = far;
        place += 256;
      };
      spread(far_in.q, 2);
      spread(far_in.k, 2);
      spread(far_in.v, 2);
      spread(far_in.beta, 2);
      spread(far_in.log_decay, 2);
      palimpsa::view<float> const near = far_out.out;
      spread(far_out.out, 0);
      CHECK(gpu_scan(rule, far_in, far_out) == 0);
      for (int end = 0; end < 2; ++end) copy(near.data + end * near.stride[axis], far_out.out.data + end * far, r.V);
      check_scan(out, oracle(p), p);
    }
}

// Fault it catches: slot · (HV·V·K) in 32 bits, in the kernel for aligned states and in the one for odd ones.
TEST_CASE("GPU: a pool of states beyond 2^31 elements") {
  PALIMPSA_TEST_NEEDS_GPU();
  constexpr std::int64_t far = (std::int64_t{1} << 31) + 8;
  if (free_bytes() < std::size_t{40} << 30) SKIP("less than 40 GiB free on this GPU");
  device_bytes const etas(static_cast<std::size_t>(2 * far + 65536) * sizeof(float)), evidences(etas.size());
  std::uint64_t n = 1800000;
  for (rule_name rule : one_of_each_write<float>())
    for (std::int64_t odd : {0, 1}) {
      recipe r;
      r.B = 1, r.T = 1, r.HV = r.HK = 2, r.K = 16, r.V = 5;
      problem const p = as_stored<float>(draw(rule, r, ++n));
      INFO(p << ", pointer " << odd << " elements late");
      pool_plan const plan{3, {2}, {}};
      gpu_pool<float> const x(p, plan);
      palimpsa::step_arguments<float> a = x.arguments();
      auto const copy = [&](palimpsa::view<float>& pool, device_bytes const& field, bool back) {
        if (!pool.present()) return;
        palimpsa::view<float> away = pool;
        away.data = static_cast<float*>(field.data()) + odd;
        away.stride[0] = far;
        auto const size = static_cast<std::size_t>(pool.stride[0]) * sizeof(float);
        float *const here = pool.at(2), *const there = away.at(2);
        expect(cudaMemcpy(back ? here : there, back ? there : here, size, cudaMemcpyDeviceToDevice), "cudaMemcpy");
        if (!back) pool = away;
      };
      palimpsa::view<float> eta = a.eta, evidence = a.evidence;
      copy(a.eta, etas, false);
      copy(a.evidence, evidences, false);
      CHECK(gpu_step(rule, a) == 0);
      copy(eta, etas, true);
      copy(evidence, evidences, true);
      check_step(x, p, plan);
    }
}

// Fault it catches: sequences or heads on a grid axis that ends at 65,535.
TEST_CASE("GPU: 70,000 sequences, 70,000 rows of a step, 70,000 heads") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::uint64_t n = 1900000;
  for (rule_name rule : one_of_each_write<float>()) {
    recipe r;
    r.HK = r.HV = 1, r.K = 4, r.V = 2;
    recipe packed = r;
    packed.lengths.assign(70000, 1);
    packed.lengths[3] = 0, packed.lengths[69999] = 2;
    recipe rows = r;
    rows.B = 70000, rows.T = 1;
    recipe heads = r;
    heads.B = 1, heads.T = 2, heads.HK = heads.HV = 70000;
    for (recipe const& many : {packed, rows, heads}) {
      problem const p = as_stored<float>(draw(rule, many, ++n));
      INFO(p);
      right_values const right = oracle(p);
      gpu_outputs<float> out(p);
      CHECK(gpu_scan(rule, gpu_inputs<float>(p), out) == 0);
      check_scan(out, right, p);
      if (!many.lengths.empty()) continue;
      gpu_outputs<float> stepped(p);
      moving_states<float> states(p);
      CHECK(gpu_steps(p, gpu_inputs<float>(p), stepped, states, many.T) == 0);
      stepped.final_eta = std::move(states.eta), stepped.final_evidence = std::move(states.evidence);
      CHECK(stepped.bits() == out.bits());
    }
  }
}
