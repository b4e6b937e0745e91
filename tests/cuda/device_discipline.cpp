// The discipline of a call: the caller's stream and device, no synchronisation, no allocation, capture in a graph.

#include <atomic>
#include <thread>

#include "cuda/device_call.hpp"

using namespace palimpsa_test;

namespace {

/// A captured graph, ready to launch.
class captured {
 public:
  template <class F>
  captured(cudaStream_t stream, F record) {
    cudaGraph_t graph = nullptr;
    expect(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    record();
    expect(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    expect(cudaGraphInstantiate(&ready_, graph, 0), "cudaGraphInstantiate");
    expect(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  captured(captured const&) = delete;
  captured& operator=(captured const&) = delete;
  ~captured() { static_cast<void>(cudaGraphExecDestroy(ready_)); }
  void launch(cudaStream_t stream) const { expect(cudaGraphLaunch(ready_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t ready_ = nullptr;
};

/// Holds a stream until it is released.
class gate {
 public:
  explicit gate(cudaStream_t stream) {
    expect(cudaLaunchHostFunc(stream, [](void* open) {
             while (!static_cast<std::atomic<bool>*>(open)->load()) std::this_thread::yield();
           }, &open_), "cudaLaunchHostFunc");
  }
  void release() { open_ = true; }
  ~gate() { release(); }

 private:
  std::atomic<bool> open_{false};
};

recipe two_rows(std::int64_t T) {
  recipe r;
  r.B = 2, r.T = T, r.K = 24, r.V = 20;
  return r;
}

/// New numbers of the same shapes, into the same memory.
void refill(gpu_inputs<float>& in, problem const& p) {
  in.q.fill(p.q), in.k.fill(p.k), in.v.fill(p.v), in.beta.fill(p.beta), in.log_decay.fill(p.log_decay);
  if (!p.prior.empty()) in.prior.fill(p.prior);
  in.initial_eta.fill(p.initial_eta);
  if (!p.initial_evidence.empty()) in.initial_evidence.fill(p.initial_evidence);
}

}  // namespace

// Fault it catches: a synchronisation, an allocation or a copy of lengths to the host inside a call (each ends the capture); a kernel on
// the legacy stream (it is not in the graph); a number baked into the graph that should be read from memory.
TEST_CASE("GPU: a scan and a step captured in a graph, replayed with new data") {
  PALIMPSA_TEST_NEEDS_GPU();
  for (rule_name rule : one_of_each_write<float>()) {
    problem const first = as_stored<float>(draw(rule, two_rows(21), 1));
    INFO(first);
    gpu_inputs<float> in(first);
    gpu_outputs<float> const out(first);
    pool_plan const plan{5, {3, 1}, {}};
    recipe one = two_rows(1);
    gpu_pool<float> pool(as_stored<float>(draw(rule, one, 2)), plan);
    gpu_calls<float> const& calls = gpu_calls_of<float>(rule);
    test_stream const stream;
    gpu how;
    how.stream = stream;
    device_bytes const scratch(calls.scan_workspace(how, in.inputs())), step_scratch(calls.step_workspace(how, pool.arguments()));
    captured const graph(stream, [&] {
      calls.scan(how, in.inputs(), out.outputs(), scratch);
      calls.step(how, pool.arguments(), step_scratch);
    });
    CHECK(out.still_poisoned());  // captured, not run
    for (std::uint64_t n : {3, 4, 5}) {
      problem const p = as_stored<float>(draw(rule, two_rows(21), n)), q = as_stored<float>(draw(rule, one, n));
      refill(in, p);
      refill(pool.inputs, gpu_pool<float>::without_states(q));
      gpu_pool<float> const fresh(q, plan);
      for (auto [to, from] : {std::pair{&pool.eta, &fresh.eta}, {&pool.evidence, &fresh.evidence}})
        if (to->view().present()) to->fill(from->values());
      graph.launch(stream);
      finish();
      check_scan(out, oracle(p), p);
      check_step(pool, q, plan);
    }
  }
}

// Fault it catches: work that does not wait for what the caller's stream has before it.
TEST_CASE("GPU: a call is ordered on the caller's stream") {
  PALIMPSA_TEST_NEEDS_GPU();
  for (rule_name rule : one_of_each_write<float>()) {
    problem const p = as_stored<float>(draw(rule, two_rows(21), 6));
    INFO(p);
    gpu_inputs<float> const in(p);
    gpu_outputs<float> const out(p), warm(p);
    gpu_scan(rule, in, warm);  // the first launch of a kernel may load it, which may wait for the device
    gpu_calls<float> const& calls = gpu_calls_of<float>(rule);
    test_stream const stream, aside;
    gpu how;
    how.stream = stream;
    device_bytes const scratch(calls.scan_workspace(how, in.inputs()));
    palimpsa::view<float> const there = out.out.view();
    float one = 0;
    {
      gate held(stream);
      calls.scan(how, in.inputs(), out.outputs(), scratch);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      expect(cudaMemcpyAsync(&one, there.data, sizeof one, cudaMemcpyDeviceToHost, aside), "cudaMemcpyAsync");
      expect(cudaStreamSynchronize(aside), "cudaStreamSynchronize");
    }
    CHECK(std::isnan(one));
    finish();
    check_scan(out, oracle(p), p);
  }
}

// Fault it catches: scratch or a counter that two calls share.
TEST_CASE("GPU: two streams at once, each with its own workspace") {
  PALIMPSA_TEST_NEEDS_GPU();
  for (rule_name rule : one_of_each_write<float>()) {
    recipe long_one = two_rows(rule.keeps_full() ? 60 : 600), short_one = two_rows(33);
    long_one.K = 40;
    problem const a = as_stored<float>(draw(rule, long_one, 7)), b = as_stored<float>(draw(rule, short_one, 8));
    INFO(a);
    gpu_inputs<float> const in_a(a), in_b(b);
    gpu_outputs<float> const alone_a(a), alone_b(b), out_a(a), out_b(b);
    gpu_scan(rule, in_a, alone_a);
    gpu_scan(rule, in_b, alone_b);
    gpu_calls<float> const& calls = gpu_calls_of<float>(rule);
    test_stream const left, right;
    gpu how_a, how_b;
    how_a.stream = left, how_b.stream = right;
    device_bytes const scratch_a(calls.scan_workspace(how_a, in_a.inputs())), scratch_b(calls.scan_workspace(how_b, in_b.inputs()));
    for (int i = 0; i < 20; ++i) {
      calls.scan(how_a, in_a.inputs(), out_a.outputs(), scratch_a);
      calls.scan(how_b, in_b.inputs(), out_b.outputs(), scratch_b);
      calls.scan(how_b, in_b.inputs(), out_b.outputs(), scratch_b);
    }
    finish();
    CHECK(out_a.bits() == alone_a.bits());
    CHECK(out_b.bits() == alone_b.bits());
  }
}

// Fault it catches: memory freed before the stream has used it; other results than with the caller's workspace.
TEST_CASE("GPU: the overload that allocates gives the same bits, on any stream") {
  PALIMPSA_TEST_NEEDS_GPU();
  for (rule_name rule : one_of_each_write<float>()) {
    problem const p = as_stored<float>(draw(rule, two_rows(21), 9));
    INFO(p);
    gpu_inputs<float> const in(p);
    gpu_outputs<float> const given(p), allocated(p);
    gpu_scan(rule, in, given);
    test_stream const stream;
    gpu how;
    how.stream = stream;
    for (int i = 0; i < 3; ++i) gpu_calls_of<float>(rule).scan_allocating(how, in.inputs(), allocated.outputs());
    finish();
    CHECK(allocated.bits() == given.bits());

    pool_plan const plan{2, {}, {}};
    gpu_pool<float> const one(p, plan), other(p, plan);
    gpu_step(rule, one.arguments());
    gpu_calls_of<float>(rule).step_allocating(how, other.arguments());
    finish();
    CHECK(one.eta.bits() == other.eta.bits());
    CHECK(one.outputs.out.bits() == other.outputs.out.bits());
  }
}

// Fault it catches: a launch on the current device instead of the stream's; the caller's device changed behind its back.
TEST_CASE("GPU: the stream's device does the work, and the caller's stays current") {
  PALIMPSA_TEST_NEEDS_GPU();
  int const devices = device_count();
  if (devices < 2) WARN("not run: a stream on a second device (this machine has one)");
  for (int device = 0; device < (std::min)(devices, 2); ++device)
    for (rule_name rule : one_of_each_write<float>()) {
      expect(cudaSetDevice(device), "cudaSetDevice");
      {
        problem const p = as_stored<float>(draw(rule, two_rows(21), 10));
        INFO(p << ", device " << device);
        gpu_inputs<float> const in(p);
        gpu_outputs<float> const out(p);
        test_stream const stream;
        gpu how;
        how.stream = stream;
        expect(cudaSetDevice(0), "cudaSetDevice");
        gpu_calls<float> const& calls = gpu_calls_of<float>(rule);
        std::size_t const size = calls.scan_workspace(how, in.inputs());
        expect(cudaSetDevice(device), "cudaSetDevice");
        device_bytes const scratch(size);
        expect(cudaSetDevice(0), "cudaSetDevice");
        calls.scan(how, in.inputs(), out.outputs(), scratch);
        calls.scan_allocating(how, in.inputs(), out.outputs());
        int current = -1;
        expect(cudaGetDevice(&current), "cudaGetDevice");
        CHECK(current == 0);
        expect(cudaSetDevice(device), "cudaSetDevice");
        finish();
        check_scan(out, oracle(p), p);
      }
      expect(cudaSetDevice(0), "cudaSetDevice");
    }
}
