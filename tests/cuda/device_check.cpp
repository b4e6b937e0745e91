// The status word, and check(): what only the device knew, told to the host afterwards.

#include "palimpsa/cuda/check.cuh"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "cuda/device_call.hpp"

using namespace palimpsa_test;
namespace cuda = palimpsa::cuda;

namespace {

rule_name const palimpsa_rule{kind::palimpsa, gates::head, false}, mesa_net{kind::mesa_net, gates::head, false};

recipe two_rows() {
  recipe r;
  r.B = 2, r.T = 3, r.K = 6, r.V = 4;
  return r;
}

}  // namespace

// Fault it catches: a word that a later, innocent call clears; a bit without words.
TEST_CASE("GPU: the status word keeps what was found, and check() says it") {
  PALIMPSA_TEST_NEEDS_GPU();
  problem good = as_stored<float>(draw(palimpsa_rule, two_rows(), 1)), bad = good;
  bad.log_decay[3] = 0.5, bad.prior[1] = -1;
  test_stream const stream;
  status_word status;
  gpu how;
  how.stream = stream, how.status = status.data();
  gpu_calls<float> const& calls = gpu_calls_of<float>(palimpsa_rule);
  gpu_inputs<float> const in(good), bad_in(bad);
  gpu_outputs<float> const out(good);
  calls.scan(how, in.inputs(), out.outputs(), {});
  cuda::check(how);  // nothing found, nothing thrown
  calls.scan(how, bad_in.inputs(), out.outputs(), {});
  calls.scan(how, in.inputs(), out.outputs(), {});
  CHECK_THROWS_WITH(cuda::check(how), contains("log_decay above 0") && contains("prior that is not above 0") && !contains("slot"));
  CHECK_THROWS_AS(cuda::check(how), palimpsa::argument_error);
  CHECK(cudaGetLastError() == cudaSuccess);
  status.clear();
  cuda::check(how);
  how.status = nullptr;
  calls.scan(how, bad_in.inputs(), out.outputs(), {});
  cuda::check(how);  // without a word there is nothing to tell
}

// Fault it catches: an element named by its place in memory instead of its index.
TEST_CASE("GPU: check of a scan names tensor and element, through any strides") {
  PALIMPSA_TEST_NEEDS_GPU();
  problem const good = as_stored<float>(draw(palimpsa_rule, two_rows(), 2));
  auto const message = [&](problem const& p, layout how, index_width width = index_width::int32) {
    gpu_inputs<float> const in(p, how, layout::aligned, width);
    try {
      cuda::check<palimpsa::Palimpsa>({}, in.inputs());
    } catch (palimpsa::argument_error const& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  for (layout how : every_layout) {
    INFO(how);
    CHECK(message(good, how) == "nothing");
    problem p = good;
    p.log_decay[(1 * 3 + 2) * 4 + 3] = 0.5;
    CHECK_THAT(message(p, how), contains("log_decay[1, 2, 3]") && contains("0.5"));
    p = good;
    p.prior[2] = 0;
    CHECK_THAT(message(p, how), contains("prior[2]"));
  }
  recipe r = two_rows();
  r.lengths = {1, 2};
  problem packed = as_stored<float>(draw(palimpsa_rule, r, 3));
  for (index_width width : {index_width::int32, index_width::int64}) {
    CHECK(message(packed, layout::aligned, width) == "nothing");
    problem p = packed;
    p.cu_seqlens[1] = 4;
    CHECK_THAT(message(p, layout::aligned, width), contains("cu_seqlens[2]") && contains("at least 4"));
  }
}

// Fault it catches: what lies far apart copied as one range of 17 GB.
TEST_CASE("GPU: check of a scan with gates far apart") {
  PALIMPSA_TEST_NEEDS_GPU();
  constexpr std::int64_t far = std::int64_t{1} << 28;
  device_bytes const field(static_cast<std::size_t>(far + 64) * sizeof(float));
  expect(cudaMemset(field.data(), 0, field.size()), "cudaMemset");
  float const above = 0.25f;
  auto* const base = static_cast<float*>(field.data());
  expect(cudaMemcpy(base + far + 3, &above, sizeof above, cudaMemcpyHostToDevice), "cudaMemcpy");
  problem const p = as_stored<float>(draw(palimpsa_rule, two_rows(), 4));
  gpu_inputs<float> const in(p);
  palimpsa::scan_inputs<float> far_in = in.inputs();
  far_in.log_decay = {base, {2, 3, 4}, {far, 4, 1}};
  CHECK_THROWS_WITH((cuda::check<palimpsa::Palimpsa>({}, far_in)), contains("log_decay[1, 0, 3]") && contains("0.25"));
}

// Fault it catches: evidence of a full memory not looked at.
TEST_CASE("GPU: check of a scan sees evidence that is not symmetric") {
  PALIMPSA_TEST_NEEDS_GPU();
  problem p = as_stored<float>(draw(mesa_net, two_rows(), 5));
  gpu_inputs<float> const good(p);
  cuda::check<palimpsa::MesaNet>({}, good.inputs());
  p.initial_evidence[1] += 1;
  gpu_inputs<float> const bad(p);
  CHECK_THROWS_WITH((cuda::check<palimpsa::MesaNet>({}, bad.inputs())), contains("initial_evidence") && contains("symmetric"));
}

// Fault it catches: what no kernel can see: a slot written twice in a call, or written by one row and read by another.
TEST_CASE("GPU: check of a step names the slot") {
  PALIMPSA_TEST_NEEDS_GPU();
  recipe r = two_rows();
  r.B = 4, r.T = 2;
  problem const p = as_stored<float>(draw(palimpsa_rule, r, 6));
  auto const message = [&](pool_plan const& plan, index_width width) {
    gpu_pool<float> const pool(p, plan, layout::aligned, layout::aligned, width);
    try {
      cuda::check<palimpsa::Palimpsa>({}, pool.arguments());
    } catch (palimpsa::argument_error const& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  for (index_width width : {index_width::int32, index_width::int64}) {
    CHECK(message({9, {7, -1, 3, 0}, {1, 2, -1, 5}}, width) == "nothing");
    CHECK_THAT(message({9, {7, 1, 3, 9}, {}}, width), contains("slot_in[3]") && contains("9"));
    CHECK_THAT(message({9, {7, 1, 3, 0}, {4, 5, 6, -2}}, width), contains("slot_out[3]") && contains("-2"));
    CHECK_THAT(message({9, {7, 1, 3, 0}, {4, 5, 6, 4}}, width), contains("slot_out[3]") && contains("also written by row 0"));
    CHECK_THAT(message({9, {7, 1, 3, 0}, {4, 3, 6, 0}}, width), contains("slot_out[1]") && contains("read by row 2"));
    pool_plan snapshots{9, {7, 1, 3, 0}, {4, 5, 6, 8, -1, 2, 5, 0}, true};
    CHECK_THAT(message(snapshots, width), contains("slot_out[3]") && contains("slot 5"));
  }
}
