// A silent memory that fades reaches zero. Denormals cost 60 times a normal number and never end under a gate above 1/2 (the smallest of
// them times α rounds to itself), so none may be left in a state, an output or a gradient; and however that is reached, the caller's
// floating-point environment is what it was, after an error, too.

#include <limits>

#include "edge/engine_of.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "support/catch.hpp"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#endif

using namespace palimpsa_test;

namespace {

/// T tokens that write nothing, over a memory of things learnt.
edge_problem silence(axes r, std::int64_t T, double log_decay) {
  dice d(seed_of(9500));
  edge_problem p;
  p.T = T, p.K = 3, p.V = 5;
  p.q = d.normals(T * p.K), p.k = d.normals(T * p.K);
  p.v.assign(static_cast<std::size_t>(T * p.V), 0), p.beta.assign(static_cast<std::size_t>(T), 0);
  std::int64_t const gates_given = r.forget == gates::constant ? 1 : r.forget == gates::head ? T : T * p.K;
  p.log_decay.assign(static_cast<std::size_t>(gates_given), log_decay);
  p.eta = d.normals(p.V * p.K), p.d_eta = d.normals(p.V * p.K), p.d_out = d.normals(T * p.V);
  if (r.memory != keeps::nothing) p.prior = {1};
  if (r.memory == keeps::diagonal) p.J = d.uniforms(p.V * p.K, 0, 2), p.d_J = d.normals(p.V * p.K), p.d_variance = d.normals(T * p.V);
  if (r.memory == keeps::full) p.J = {2, 0.5, 0.5, 0.5, 2, 0.5, 0.5, 0.5, 2}, p.d_J = p.J;
  return p;
}

template <class S> std::size_t denormals_in(numbers const& x) {
  std::size_t n = 0;
  for (double y : x) n += y != 0 && std::fabs(y) < static_cast<double>(std::numeric_limits<S>::min());
  return n;
}

template <class S> void hold(engine const& e, std::int64_t T, double log_decay) {
  edge_problem const p = silence(e.at, T, log_decay);
  answers const a = sizeof(S) == 4 ? e.in_float(p) : e.in_double(p);
  INFO(e.name << (sizeof(S) == 4 ? " in float, " : " in double, ") << T << " silent tokens under log_decay " << log_decay);
  for (std::size_t i = 0; i < result_count; ++i) {
    INFO("denormals in " << name_of(i));
    CHECK(denormals_in<S>(a[i]) == 0);
  }
  for (result state : {result::eta, result::J, result::d_eta})
    for (double x : at(a, state)) {
      bool const faded = state != result::d_eta;  // its cotangents of out come fresh with every token
      if (faded && x != 0) FAIL_CHECK(name_of(static_cast<std::size_t>(state)) << " is left with " << x);
    }
}

}  // namespace

TEST_CASE("A silent memory fades to zero, and no denormal is left anywhere") {
  std::vector<engine> engines = every_engine();
  for (engine const& e : engines_in_chunks()) engines.push_back(e);
  for (engine const& e : engines) {
    if (e.at.forget == gates::none) continue;
    hold<float>(e, 2400, -0.05);
    hold<float>(e, 300, -0.5);
    hold<float>(e, 200, -3);
    hold<double>(e, 1800, -0.5);
    hold<double>(e, 400, -3);
  }
}

#if defined(__SSE__)
namespace {

constexpr unsigned sticky = 0x3f;  // flags of exceptions that have happened

/// One call of every kind, and one that throws, under this control word.
void environment_is_kept(unsigned control) {
  unsigned const mine = _mm_getcsr();
  auto const is_kept = [&](char const* after) {
    unsigned const found = _mm_getcsr() & ~sticky;
    _mm_setcsr(mine);  // before the test framework works on
    INFO("after " << after);
    CHECK(found == (control & ~sticky));
    _mm_setcsr(control);
  };
  engine const sequential = engines_without_memory().front(), chunked = engines_in_chunks().front();
  edge_problem p = silence(sequential.at, 3, -1);
  _mm_setcsr(control);
  sequential.in_float(p);
  is_kept("a scan and a backward pass");
  chunked.in_float(p);
  is_kept("a scan in chunks");
  p.log_decay = {0, 1, 0};
  bool thrown = false;
  for (engine const* e : {&sequential, &chunked}) {
    try {
      e->in_float(p);
    } catch (palimpsa::argument_error const&) {
      thrown = true;
    }
    is_kept("an error");
    CHECK(thrown);
    thrown = false;
  }
  _mm_setcsr(mine);
}

}  // namespace

TEST_CASE("The floating-point environment of the caller is what it was") {
  unsigned const mine = _mm_getcsr() & ~sticky;
  environment_is_kept(mine);
  environment_is_kept(mine | 0x8000);           // flush to zero
  environment_is_kept(mine | 0x8040);           // and read denormals as zero
  environment_is_kept((mine & ~0x6000u) | 0x2000u);  // round down
}

#if defined(_OPENMP)
TEST_CASE("And so is that of the threads that helped") {
  using namespace palimpsa;
  std::vector<float> const x(8 * 8 * 8 * 8, 1);
  std::vector<float> out(x.size());
  view<float const> const in(x.data(), {8, 8, 8, 8});
  scan_inputs<float> a;
  a.q = in, a.k = in, a.v = in;
  unsigned const mine = _mm_getcsr() & ~sticky;
  scan<Mamba2>(palimpsa::sequential{2}, a, scan_outputs<float>{view<float>(out.data(), {8, 8, 8, 8}), {}, {}, {}}, allocate);
  unsigned found[2] = {mine, mine};
#pragma omp parallel num_threads(2)
  found[omp_get_thread_num()] = _mm_getcsr() & ~sticky;
  CHECK(found[0] == mine);
  CHECK(found[1] == mine);
}
#endif
#endif
