// Memory of a call: nothing is allocated, exactly the workspace asked for is used, and its contents and address do not
// matter.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <new>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "palimpsa/error.hpp"
#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/scan_backward.hpp"
#include "palimpsa/scan_chunked.hpp"
#include "palimpsa/storage_eigen.hpp"
#include "support/call.hpp"
#include "support/step_call.hpp"

using namespace palimpsa_test;

namespace {
std::atomic<bool> watching{false};
std::atomic<int> allocations{0};
}  // namespace

// Every road to the heap, glibc's own way of interposing. Sanitizers bring an allocator of their own.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define PALIMPSA_TEST_SANITIZED
#endif
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(PALIMPSA_TEST_SANITIZED)
#define PALIMPSA_TEST_COUNTS 1
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t n, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

static void note() {
  if (watching.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}
void* malloc(std::size_t size) noexcept { return note(), __libc_malloc(size); }
void* calloc(std::size_t n, std::size_t size) noexcept { return note(), __libc_calloc(n, size); }
void* realloc(void* old, std::size_t size) noexcept { return note(), __libc_realloc(old, size); }
void* memalign(std::size_t alignment, std::size_t size) noexcept { return note(), __libc_memalign(alignment, size); }
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return note(), __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) noexcept {
  note();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? 12 : 0;
}
}
#else
#define PALIMPSA_TEST_COUNTS 0
#endif

namespace {

/// Allocations that f makes.
template <class F> int count_allocations(F f) {
  allocations = 0;
  watching = true;
  f();
  watching = false;
  return allocations;
}

recipe large() {
  recipe r;
  r.B = 1, r.T = 3, r.HK = 1, r.HV = 1, r.K = 256, r.V = 256;
  return r;
}

template <class Storage> void check_scan_allocates_nothing() {
  for (kind write : every_kind)
    for (std::int64_t size : {5, 256}) {
      if (!instantiated<Storage>({write})) continue;
      recipe r = large();
      r.K = r.V = size;
      problem const p = rounded<Storage>(draw({write}, r, 300));
      INFO(p);
      call<Storage> const c(p);
      results<Storage> x = c.outputs();
      palimpsa::sequential const one{1};
      auto scratch = scratch_of(scan_workspace(p.rule, one, c.in));
      int const n = count_allocations([&] {
        run_scan(p.rule, one, c.in, {x.out, x.out_variance, x.final_eta, x.final_evidence},
                 palimpsa::workspace(scratch));
      });
      CHECK(n == 0);
    }
}

template <class Storage> void check_step_allocates_nothing() {
  for (kind write : every_kind) {
    recipe r = large();
    r.T = 2;
    problem const p = rounded<Storage>(draw({write}, r, 301));
    INFO(p);
    call<Storage> const c(p);
    pool<Storage> states(p, 3);
    std::int64_t const in[] = {2}, out[] = {0, 1};
    palimpsa::step_arguments<Storage> a = states.arguments(c);
    results<Storage> x = c.outputs();
    a.out = x.out, a.out_variance = x.out_variance;
    a.slot_in = {in, 1}, a.slot_out = {out, 1, 2};
    palimpsa::sequential const one{1};
    auto scratch = scratch_of(step_workspace(p.rule, one, a));
    CHECK(count_allocations([&] { run_step(p.rule, one, a, palimpsa::workspace(scratch)); }) == 0);
  }
}

}  // namespace

// Planted: Eigen's blocked Cholesky in place of the library's own: it allocates at K = 256.
namespace {

/// A product that packed its factors would need the most at K = V = 256 in double.
template <class Rule, class Storage> void check_chunks_allocate_nothing(kind write) {
  recipe r = large();
  r.T = 130, r.beta = write == kind::palimpsa ? beta_shape::channel : beta_shape::head;
  problem const p = draw({write}, r, 310);
  INFO(p);
  call<Storage> const c(p);
  results<Storage> x = c.outputs();
  palimpsa::chunked const how{100, 1};
  auto scratch = scratch_of(palimpsa::scan_workspace<Rule>(how, c.in));
  palimpsa::scan_outputs<Storage> const out{x.out, x.out_variance, x.final_eta, x.final_evidence};
  CHECK(count_allocations([&] { palimpsa::scan<Rule>(how, c.in, out, palimpsa::workspace(scratch)); }) == 0);
}

}  // namespace

TEST_CASE("A scan in chunks allocates nothing") {
  if (PALIMPSA_TEST_COUNTS == 0) SKIP("the sanitizers bring an allocator of their own");
  check_chunks_allocate_nothing<palimpsa::GatedDeltaNet, double>(kind::delta);
  check_chunks_allocate_nothing<palimpsa::GatedDeltaNet, float>(kind::delta);
  check_chunks_allocate_nothing<palimpsa::Palimpsa, double>(kind::palimpsa);
  check_chunks_allocate_nothing<palimpsa::MesaNet, double>(kind::mesa_net);
}

TEST_CASE("A scan with a workspace allocates nothing") {
  if (!PALIMPSA_TEST_COUNTS) SKIP("allocations are counted on glibc without sanitizers");
  // Through a volatile pointer: a compiler may leave out an allocation that nobody reads.
  void* volatile taken = nullptr;
  REQUIRE(count_allocations([&] { taken = std::malloc(1), std::free(taken); }) == 1);
  REQUIRE(count_allocations([&] { taken = ::operator new(1), ::operator delete(taken); }) == 1);
  check_scan_allocates_nothing<double>();
  check_scan_allocates_nothing<float>();
  check_scan_allocates_nothing<Eigen::bfloat16>();
}

TEST_CASE("A step with a workspace allocates nothing") {
  if (!PALIMPSA_TEST_COUNTS) SKIP("allocations are counted on glibc without sanitizers");
  check_step_allocates_nothing<double>();
  check_step_allocates_nothing<float>();
}

namespace {

/// Runs f over a workspace of exactly `size` bytes that starts `shift` bytes after a cache line, between guards.
template <class F> bool guards_hold(std::size_t size, std::size_t shift, F f) {
  constexpr std::size_t guard = 256;
  std::vector<std::byte> memory(size + shift + 2 * guard + 64, std::byte{0x5a});
  auto const address = reinterpret_cast<std::uintptr_t>(memory.data() + guard);
  std::size_t const start = guard + (64 - address % 64) % 64 + shift;
  f(palimpsa::workspace(memory.data() + start, size));
  return std::all_of(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(start),
                     [](std::byte b) { return b == std::byte{0x5a}; }) &&
         std::all_of(memory.begin() + static_cast<std::ptrdiff_t>(start + size), memory.end(),
                     [](std::byte b) { return b == std::byte{0x5a}; });
}

}  // namespace

// Planted: an arena that starts at the caller's first byte; a share of a thread that is 64 bytes too large.
TEST_CASE("Exactly the workspace asked for is used, from any address") {
  std::uint64_t n = 310;
  for (kind write : every_kind)
    for (int threads : {1, 3}) {
      recipe r = any_sizes(++n);
      r.B = 2;
      problem const p = rounded<float>(draw({write}, r, n));
      INFO(p);
      call<float> const c(p);
      results<float> const right = c.run();
      palimpsa::sequential const how{threads};
      std::size_t const needed = scan_workspace(p.rule, how, c.in);
      for (std::size_t shift : std::initializer_list<std::size_t>{0, 1, 63, 8, 32}) {
        results<float> x = c.outputs();
        CHECK(guards_hold(needed, shift, [&](palimpsa::workspace w) {
          run_scan(p.rule, how, c.in, {x.out, x.out_variance, x.final_eta, x.final_evidence}, w);
        }));
        CHECK(same_bits(right, x));
        pool<float> states(p, 2);
        auto a = states.arguments(c);
        results<float> y = c.outputs();
        a.out = y.out;
        std::int32_t const slots[] = {1, 0};
        a.slot_in = {slots, 2};
        CHECK(guards_hold(step_workspace(p.rule, how, a), shift,
                          [&](palimpsa::workspace w) { run_step(p.rule, how, a, w); }));
      }
    }
}

// Planted: a size check before the padding for alignment is added.
TEST_CASE("A workspace one byte short is refused, and nothing is written") {
  for (kind write : every_kind) {
    problem const p = draw({write}, recipe{}, 320);
    INFO(p);
    call<double> const c(p);
    results<double> x = c.outputs();
    std::size_t const needed = scan_workspace(p.rule, {1}, c.in);
    auto scratch = scratch_of(needed - 1);
    std::string const expected = "palimpsa: workspace: expected at least " + std::to_string(needed) + " bytes, given " +
                                 std::to_string(needed - 1) + " bytes";
    CHECK_THROWS_WITH(run_scan(p.rule, {1}, c.in, {x.out, x.out_variance, x.final_eta, x.final_evidence},
                               palimpsa::workspace(scratch)),
                      expected);
    CHECK_THROWS_AS(run_scan(p.rule, {1}, c.in, {x.out, x.out_variance, x.final_eta, x.final_evidence}, {}),
                    palimpsa::argument_error);
    CHECK(x.still_poisoned());

    pool<double> states(p, 2);
    auto a = states.arguments(c);
    a.out = x.out;
    std::int64_t const slots[] = {1, 0};
    a.slot_in = {slots, 2};
    auto less = scratch_of(step_workspace(p.rule, {1}, a) - 1);
    CHECK_THROWS_AS(run_step(p.rule, {1}, a, palimpsa::workspace(less)), palimpsa::argument_error);
    CHECK(x.still_poisoned());
  }
}

#if defined(_OPENMP)
// Against: a size, and the share of a thread, by omp_get_max_threads().
TEST_CASE("A workspace asked for under one number of threads serves under another") {
  int const before = omp_get_max_threads();
  for (kind write : {kind::palimpsa, kind::mesa_net, kind::longhorn}) {
    recipe r;
    r.B = 4, r.T = 300, r.HK = r.HV = 4, r.K = 33, r.V = 40;  // work that is worth every thread
    problem const p = rounded<float>(draw({write}, r, 330));
    INFO(p);
    call<float> const c(p);
    results<float> const right = c.run();
    pool<float> states(p, 4);
    for (int asked : {1, 2, 7})
      for (int used : {1, 3, 16}) {
        omp_set_num_threads(asked);
        auto scratch = scratch_of(scan_workspace(p.rule, {}, c.in));
        omp_set_num_threads(used);
        CHECK(scan_workspace(p.rule, {}, c.in) == scratch.size());
        results<float> x = c.outputs();
        CHECK_NOTHROW(run_scan(p.rule, {}, c.in, {x.out, x.out_variance, x.final_eta, x.final_evidence}, palimpsa::workspace(scratch)));
        CHECK(same_bits(right, x));
        auto a = states.arguments(c);
        results<float> y = c.outputs();
        a.out = y.out;
        omp_set_num_threads(asked);
        auto steps = scratch_of(step_workspace(p.rule, {}, a));
        omp_set_num_threads(used);
        CHECK_NOTHROW(run_step(p.rule, {}, a, palimpsa::workspace(steps)));
        CHECK(y.out.bits() == right.out.bits());
        for (std::int64_t n = 0; n < 4; ++n) states.fill(p, n, n);
      }
    omp_set_num_threads(before);
    auto scratch = scratch_of(scan_workspace(p.rule, {}, c.in));
    results<float> x = c.outputs();
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0)  // inside a team, where OpenMP gives one thread
      run_scan(p.rule, {}, c.in, {x.out, x.out_variance, x.final_eta, x.final_evidence}, palimpsa::workspace(scratch));
    CHECK(same_bits(right, x));
  }
}
#endif

// Against: thread_limit without its work.
TEST_CASE("Small calls do not start threads, and a number that the caller names is honoured") {
  using palimpsa::cpu::thread_limit;
  CHECK(thread_limit(8, 8 * 16 * 16, 0) == 1);
  CHECK(thread_limit(8, 0x1p20, 0) == 1);
  CHECK(thread_limit(1000, 1e15, 0) == palimpsa::cpu::hardware_threads());
  CHECK(thread_limit(8, 1, 3) == 3);
  CHECK(thread_limit(2, 1, 3) == 2);
  CHECK(thread_limit(0, 0, 0) == 1);
}

namespace {

/// Rank 4, repeated over V by a stride of 0.
palimpsa::view<double const> repeated_over(palimpsa::view<double const> beta, std::int64_t V) {
  return {beta.data, {beta.extent[0], beta.extent[1], beta.extent[2], V}, {beta.stride[0], beta.stride[1], beta.stride[2], 0}};
}

template <class Rule, class Exec> void check_repeated_beta(kind write, Exec how, std::int64_t V) {
  recipe r;
  r.B = 2, r.T = 40, r.HK = 1, r.HV = 2, r.K = 7, r.V = V;
  r.beta = beta_shape::head;
  problem const p = draw({write}, r, 340 + static_cast<std::uint64_t>(V));
  INFO(p);
  call<double> c(p);
  results<double> right = c.outputs(), x = c.outputs();
  palimpsa::scan<Rule>(how, c.in, {right.out, right.out_variance, right.final_eta, right.final_evidence}, palimpsa::allocate);
  auto in = c.in;
  in.beta = repeated_over(in.beta, V);
  palimpsa::scan<Rule>(how, in, {x.out, x.out_variance, x.final_eta, x.final_evidence}, palimpsa::allocate);
  CHECK(same_bits(right, x));

  // Its gradient: a head, or, but for a full memory, a channel.
  std::vector<double> up(right.out.values()), of_head(80 * 2), summed(80 * 2), of_channel(static_cast<std::size_t>(80 * 2 * V));
  palimpsa::scan_cotangents<double> cotangents;
  cotangents.grad_out = palimpsa::view<double const>(up.data(), {2, 40, 2, V});
  palimpsa::scan_gradients<double> down;
  down.grad_beta = {of_head.data(), {2, 40, 2}};
  palimpsa::scan_backward<Rule>(palimpsa::checkpointed{}, c.in, cotangents, down, palimpsa::allocate);
  down.grad_beta = {summed.data(), {2, 40, 2}};
  palimpsa::scan_backward<Rule>(palimpsa::checkpointed{}, in, cotangents, down, palimpsa::allocate);
  CHECK(of_head == summed);
  down.grad_beta = {of_channel.data(), {2, 40, 2, V}};
  if (Rule::keeps_full && V > 1) {
    CHECK_THROWS_AS(palimpsa::scan_backward<Rule>(palimpsa::checkpointed{}, in, cotangents, down, palimpsa::allocate),
                    palimpsa::argument_error);
    return;
  }
  palimpsa::scan_backward<Rule>(palimpsa::checkpointed{}, in, cotangents, down, palimpsa::allocate);
  double gap = 0, norm = 0;
  for (std::size_t i = 0; i < of_head.size(); ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < V; ++j) sum += of_channel[i * static_cast<std::size_t>(V) + static_cast<std::size_t>(j)];
    gap += (sum - of_head[i]) * (sum - of_head[i]), norm += of_head[i] * of_head[i];
  }
  CHECK(gap <= 1e-24 * norm);
}

}  // namespace

// Against: a rank of 4 taken for a β a channel.
TEST_CASE("Beta of four axes that is one a head is taken as such") {
  for (std::int64_t V : {1, 6}) {
    check_repeated_beta<palimpsa::GatedDeltaNet>(kind::delta, palimpsa::chunked{16, 1}, V);
    check_repeated_beta<palimpsa::MesaNet>(kind::mesa_net, palimpsa::chunked{16, 1}, V);
    check_repeated_beta<palimpsa::MesaNet>(kind::mesa_net, palimpsa::sequential{1}, V);
    check_repeated_beta<palimpsa::Palimpsa>(kind::palimpsa, palimpsa::sequential{1}, V);
  }
}
