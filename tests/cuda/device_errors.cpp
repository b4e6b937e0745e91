// Every clause of the contract's errors, on the GPU's entry points: an exception that names the tensor, nothing written, nothing left in
// CUDA's error slot.

#include <functional>
#include <limits>

#include "cuda/device_call.hpp"
#include "cuda/foreign/foreign.hpp"

using namespace palimpsa_test;

namespace {

using inputs = palimpsa::scan_inputs<float>;
using outputs = palimpsa::scan_outputs<float>;
using arguments = palimpsa::step_arguments<float>;

rule_name const palimpsa_rule{kind::palimpsa, gates::head, false}, mamba2{kind::mamba2, gates::head, false},
    mesa_net{kind::mesa_net, gates::head, false};

/// A scan that must be refused.
struct wrong_scan {
  rule_name rule;
  char const* names;  ///< must be in the message
  std::function<void(inputs&, outputs&)> spoil;
};

/// A step that must be refused.
struct wrong_step {
  rule_name rule;
  char const* names;
  std::function<void(arguments&)> spoil;
};

template <class View>
void shrink(View& v, int axis) {
  --v.extent[axis];
}

std::vector<wrong_scan> wrong_scans() {
  return {
      {palimpsa_rule, "q", [](inputs& in, outputs&) { in.q.rank = 3; }},
      {palimpsa_rule, "q", [](inputs& in, outputs&) { in.q = {}; }},
      {palimpsa_rule, "q", [](inputs& in, outputs&) { in.q.data = nullptr; }},
      {palimpsa_rule, "k", [](inputs& in, outputs&) { shrink(in.k, 3); }},
      {palimpsa_rule, "k", [](inputs& in, outputs&) { in.k = {}; }},
      {palimpsa_rule, "v", [](inputs& in, outputs&) { shrink(in.v, 1); }},
      {palimpsa_rule, "v", [](inputs& in, outputs&) { in.v.extent[2] = 3; }},
      {palimpsa_rule, "beta", [](inputs& in, outputs&) { shrink(in.beta, 0); }},
      {palimpsa_rule, "log_decay", [](inputs& in, outputs&) { in.log_decay.rank = 2; }},
      {palimpsa_rule, "prior", [](inputs& in, outputs&) { in.prior = {}; }},
      {palimpsa_rule, "prior", [](inputs& in, outputs&) { shrink(in.prior, 0); }},
      {palimpsa_rule, "initial_eta", [](inputs& in, outputs&) { std::swap(in.initial_eta.extent[2], in.initial_eta.extent[3]); }},
      {palimpsa_rule, "initial_evidence", [](inputs& in, outputs&) { shrink(in.initial_evidence, 0); }},
      {palimpsa_rule, "scale", [](inputs& in, outputs&) { in.scale = std::numeric_limits<double>::infinity(); }},
      {palimpsa_rule, "out", [](inputs&, outputs& out) { out.out = {}; }},
      {palimpsa_rule, "out", [](inputs&, outputs& out) { out.out.stride[1] = 0; }},
      {palimpsa_rule, "out_variance", [](inputs&, outputs& out) { shrink(out.out_variance, 2); }},
      {palimpsa_rule, "final_eta", [](inputs&, outputs& out) { out.final_eta.stride[0] = 0; }},
      {palimpsa_rule, "final_evidence", [](inputs&, outputs& out) { shrink(out.final_evidence, 1); }},
      {palimpsa_rule, "B = 1", [](inputs& in, outputs&) { in.cu_seqlens = {reinterpret_cast<std::int32_t const*>(in.q.data), 3}; }},
      {mamba2, "prior", [](inputs& in, outputs&) { in.prior = {in.beta.data, {in.v.extent[2]}}; }},
      {mamba2, "initial_evidence", [](inputs& in, outputs&) { in.initial_evidence = in.initial_eta; }},
      {mamba2, "out_variance", [](inputs&, outputs& out) { out.out_variance = out.out; }},
      {mesa_net, "beta", [](inputs& in, outputs&) { in.beta = {in.v.data, {in.v.extent[0], in.v.extent[1], in.v.extent[2], in.v.extent[3]}}; }},
      {mesa_net, "final_evidence", [](inputs&, outputs& out) { out.final_evidence = out.final_eta; }},
  };
}

std::vector<wrong_step> wrong_steps() {
  return {
      {palimpsa_rule, "eta", [](arguments& a) { a.eta = {}; }},
      {palimpsa_rule, "eta", [](arguments& a) { shrink(a.eta, 0); }},
      {palimpsa_rule, "evidence", [](arguments& a) { a.evidence = {}; }},
      {palimpsa_rule, "evidence", [](arguments& a) { shrink(a.evidence, 3); }},
      {palimpsa_rule, "slot_in", [](arguments& a) { a.slot_in = {reinterpret_cast<std::int32_t const*>(a.q.data), 7}; }},
      {palimpsa_rule, "slot_out", [](arguments& a) { a.slot_out = {reinterpret_cast<std::int32_t const*>(a.q.data), 2, 5}; }},
      {palimpsa_rule, "slot_in", [](arguments& a) { a.slot_in = {static_cast<std::int64_t const*>(nullptr), 2}; }},
      {palimpsa_rule, "out", [](arguments& a) { a.out.data = nullptr; }},
      {palimpsa_rule, "prior", [](arguments& a) { a.prior = {}; }},
      {palimpsa_rule, "k", [](arguments& a) { shrink(a.k, 2); }},
      {mamba2, "evidence", [](arguments& a) { a.evidence = a.eta; }},
      {mesa_net, "evidence", [](arguments& a) { a.evidence = a.eta; }},
  };
}

recipe two_rows() {
  recipe r;
  r.B = 2, r.T = 3, r.K = 6, r.V = 4;
  return r;
}

}  // namespace

// Fault it catches: a clause checked after the first launch; an error of CUDA left for the caller to find.
TEST_CASE("GPU: a scan that breaks the contract names the tensor and writes nothing") {
  PALIMPSA_TEST_NEEDS_GPU();
  for (wrong_scan const& w : wrong_scans()) {
    problem const p = draw(w.rule, two_rows(), 1);
    gpu_inputs<float> const good(p);
    gpu_outputs<float> const out(p);
    inputs in = good.inputs();
    outputs to = out.outputs();
    device_bytes const scratch(gpu_calls_of<float>(w.rule).scan_workspace({}, in));
    w.spoil(in, to);
    INFO(w.rule << ", " << w.names);
    CHECK_THROWS_WITH(gpu_calls_of<float>(w.rule).scan({}, in, to, scratch), contains(w.names) && contains("expected") && contains("given"));
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(out.still_poisoned());
  }
}

// Fault it catches: as above; a pool smaller than the batch read past its end.
TEST_CASE("GPU: a step that breaks the contract names the tensor and writes nothing") {
  PALIMPSA_TEST_NEEDS_GPU();
  for (wrong_step const& w : wrong_steps()) {
    problem const p = draw(w.rule, two_rows(), 2);
    gpu_pool<float> const pool(p, {2, {}, {}});
    arguments a = pool.arguments();
    device_bytes const scratch(gpu_calls_of<float>(w.rule).step_workspace({}, a));
    std::vector<unsigned char> const before = pool.eta.bits();
    w.spoil(a);
    INFO(w.rule << ", " << w.names);
    CHECK_THROWS_WITH(gpu_calls_of<float>(w.rule).step({}, a, scratch), contains(w.names) && contains("expected") && contains("given"));
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(pool.outputs.out.still_poisoned());
    CHECK(pool.eta.bits() == before);
  }
}

// Fault it catches: a workspace a byte too small taken anyway; one that starts at an odd address misaligned.
TEST_CASE("GPU: a workspace too small is refused, one at any address will do") {
  PALIMPSA_TEST_NEEDS_GPU();
  problem const p = as_stored<float>(draw(mesa_net, two_rows(), 3));
  gpu_inputs<float> const in(p);
  gpu_outputs<float> const out(p);
  gpu_calls<float> const& calls = gpu_calls_of<float>(mesa_net);
  std::size_t const size = calls.scan_workspace({}, in.inputs());
  REQUIRE(size > 0);
  device_bytes const scratch(size + 3);
  auto* const base = static_cast<std::byte*>(scratch.data());
  CHECK_THROWS_WITH(calls.scan({}, in.inputs(), out.outputs(), {base, size - 1}), contains("workspace"));
  CHECK(out.still_poisoned());
  calls.scan({}, in.inputs(), out.outputs(), {base + 3, size});
  finish();
  check_scan(out, oracle(p), p);
}

// Fault it catches: cudaErrorMemoryAllocation returned by the next call of the caller, who did nothing wrong.
TEST_CASE("GPU: an error of CUDA becomes an exception with the call and CUDA's words, and is not left behind") {
  PALIMPSA_TEST_NEEDS_GPU();
  std::int64_t const huge = std::int64_t{1} << 20;
  device_bytes const few(4096);
  auto* const x = static_cast<float*>(few.data());
  inputs in;
  in.q = in.k = in.v = {x, {huge, huge, 1, 16}, {0, 0, 0, 1}};
  in.prior = {x, {1}};
  outputs out;
  out.out = {x, {huge, huge, 1, 16}};
  try {
    gpu_calls_of<float>(mesa_net).scan_allocating({}, in, out);
    FAIL("64 TiB of workspace were found");
  } catch (palimpsa::cuda::error const& e) {
    CHECK(e.code == cudaErrorMemoryAllocation);
    CHECK_THAT(std::string(e.what()), contains("cudaMallocAsync") && contains(cudaGetErrorString(cudaErrorMemoryAllocation)));
  }
  CHECK(cudaGetLastError() == cudaSuccess);
}

// Fault it catches: "invalid device function", from which nobody learns what to do.
TEST_CASE("GPU: a program without code for the GPU it meets says so") {
  PALIMPSA_TEST_NEEDS_GPU();
  int major = 0;
  expect(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
  if (major == foreign_major) SKIP("this GPU is the one that foreign.cu is compiled for");
  problem const p = draw(mamba2, two_rows(), 4);
  gpu_inputs<float> const in(p);
  gpu_outputs<float> const out(p);
  CHECK_THROWS_WITH(foreign_mamba2().scan({}, in.inputs(), out.outputs(), {}),
                    contains("no code for the GPU") && contains("compute capability " + std::to_string(major)) && contains("1200"));
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(out.still_poisoned());
  CHECK(gpu_scan(mamba2, in, out) == 0);  // the kernels for this GPU are still there
  CHECK_FALSE(out.still_poisoned());
}
