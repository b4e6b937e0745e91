// Policies of a user's own that compare, choose and take exponentials: the same on numbers and on packs, on every path of the CPU.

#include <array>
#include <limits>

#include "core/capped_rules.hpp"
#include "palimpsa/cuda/machine/row_set.hpp"
#include "palimpsa/numerical_gradient.hpp"
#include "palimpsa/pack.hpp"
#include "palimpsa/scan.hpp"
#include "palimpsa/step.hpp"
#include "support/call.hpp"
#include "support/step_call.hpp"

using namespace palimpsa_test;
using palimpsa::maximum;
using palimpsa::minimum;
using palimpsa::select;

namespace {

/// Everything that elementwise.hpp names, in one number.
struct everything {
  template <class T>
  static T at(T a, T b) {
    T const chosen = select(a < b, a, 2 * b) + 10 * select(a <= b, 1, b) + 100 * select(a > b, b, 3) + 1000 * select(a >= b, T{} + 5, 7);
    T const against = select(a < 0.25, 1, T{}) + 10 * select(0.25 <= a, 1, T{}) + 100 * select(a >= 1, 1, T{}) + 1000 * select(1 > a, a, 2);
    return chosen - against / 8 + minimum(a, b) * maximum(a, b) + minimum(a, 0.25) - maximum(palimpsa::scalar_of<T>(0.5), b) - 1 + palimpsa::exp(-a) +
           palimpsa::rowwise(b, [](palimpsa::scalar_of<T> x) { return std::sqrt(x); });
  }
};

template <class T>
bool same(T a, T b) {
  return a == b || (a != a && b != b);
}

template <class S>
constexpr std::array<S, 8> edges{0, S(0.25), S(0.5), 1, 3, std::numeric_limits<S>::infinity(), std::numeric_limits<S>::quiet_NaN(), S(1e-6)};

/// Rows abreast against each alone; of(rows, i) is row i of a value, put(rows, i, x) sets it.
template <class S, class Rows, class Put, class Of>
void check_rows(int count, Put put, Of of) {
  for (std::size_t first = 0; first < 64; ++first) {
    Rows a{}, b{};
    auto const x = [&](int i) { return edges<S>[(first + static_cast<std::size_t>(i)) % 8]; };
    auto const y = [&](int i) { return edges<S>[(first / 8 + 3 * static_cast<std::size_t>(i)) % 8]; };
    for (int i = 0; i < count; ++i) put(a, i, x(i)), put(b, i, y(i));
    Rows const together = everything::at(a, b);
    for (int i = 0; i < count; ++i) CHECK(same(of(together, i), everything::at<S>(x(i), y(i))));
  }
}

template <class S, int N>
void check_pack() {
  using rows = palimpsa::pack<S, N>;
  static_assert(std::is_same_v<palimpsa::scalar_of<rows>, S> && std::is_same_v<palimpsa::scalar_of<S>, S>);
  check_rows<S, rows>(N, [](rows& p, int i, S x) { p.set(i, x); }, [](rows const& p, int i) { return p[i]; });
}

template <class S, int N>
void check_row_set() {
  using rows = palimpsa::cuda::row_set<S, N>;
  static_assert(std::is_same_v<palimpsa::scalar_of<rows>, S>);
  check_rows<S, rows>(N, [](rows& p, int i, S x) { p.row[i] = x; }, [](rows const& p, int i) { return p.row[i]; });
}

/// A problem without initial state; β a channel, gates of every strength.
problem drawn(bool capped, std::uint64_t n) {
  recipe r;
  r.HK = 1, r.HV = 2, r.V = 19, r.initial_state = false, r.key_size = 1.5;
  return draw({capped ? kind::diagonal_kalman : kind::longhorn}, r, n);
}

template <class Rule, class Storage>
numbers scanned(call<Storage> const& c) {
  results<Storage> r = c.outputs();
  palimpsa::scan<Rule>(palimpsa::sequential{1}, c.in, {r.out, r.out_variance, r.final_eta, r.final_evidence}, palimpsa::allocate);
  return r.out.values();
}

template <class Rule>
void check_forward(bool capped) {
  for (std::uint64_t n = 0; n < 8; ++n) {
    problem const p = drawn(capped, n), narrow = rounded<float>(p);
    INFO(p);
    call<double> const c(p);
    numbers const right = plain_reads(p, capped), scan = scanned<Rule>(c);
    PALIMPSA_TEST_CLOSE("scan in double", scan, right, arithmetic_bound<double>(p.longest()));
    PALIMPSA_TEST_CLOSE("scan in float", scanned<Rule>(call<float>(narrow)), plain_reads(narrow, capped), arithmetic_bound<float>(p.longest()));
    results<double> r = c.outputs();
    pool<double> const states(p, p.sizes.B);
    palimpsa::step_arguments<double> a = states.arguments(c);
    a.out = r.out;
    palimpsa::step<Rule>(palimpsa::sequential{1}, a, palimpsa::allocate);
    CHECK(r.out.values() == scan);
  }
}

template <class Rule>
void check_gradients(bool capped) {
  for (std::uint64_t n = 0; n < 4; ++n) {
    recipe s;
    s.B = 1, s.T = 6, s.HK = s.HV = 1, s.K = 3, s.V = 3, s.key_size = 1.5;
    s.log_decays = {-0.1, -0.5, -1, -2};
    problem const p = draw({capped ? kind::diagonal_kalman : kind::longhorn}, s, n);
    INFO(p);
    call<double> const c(p);
    tensor<double> const out({1, s.T, 1, s.V}, arrangement::contiguous, dice(p.seed + 7).normals(s.T * s.V));
    palimpsa::scan_cotangents<double> up;
    up.grad_out = out;
    // A step of 1e-4: no cap or floor lies within it of what these problems reach.
    CHECK(palimpsa::worst_gradient_error<Rule>(c.in, up, 1e-4) < 1e-8);
  }
}

/// Reads the sum and does not say so; no constant expression, so that only a run can tell.
struct silent_gain : capped_gain {
  static constexpr bool sees_all = false;
  template <class Lanes, class T>
  static T at(Lanes lanes, T own, T all) {
    return lanes.reciprocal(palimpsa::exp(own + all));
  }
};
struct silent_evidence : palimpsa::evidence::diagonal {
  template <class T>
  static T seen(T own, T all) {
    return own + all * palimpsa::exp(T{});
  }
};

template <class Rule>
void check_refused(char const* sentence) {
  problem const p = drawn(false, 1);
  call<double> const c(p);
  results<double> r = c.outputs();
  CHECK_THROWS_WITH(palimpsa::scan<Rule>(palimpsa::sequential{1}, c.in, {r.out, {}, r.final_eta, {}}, palimpsa::allocate), contains(sentence));
  pool<double> const states(p, p.sizes.B);
  palimpsa::step_arguments<double> a = states.arguments(c);
  a.out = r.out;
  CHECK_THROWS_WITH(palimpsa::step<Rule>(palimpsa::sequential{1}, a, palimpsa::allocate), contains(sentence));
  palimpsa::scan_cotangents<double> up;
  up.grad_out = c.v;
  palimpsa::scan_gradients<double> down;
  tensor<double> const grad_q({p.sizes.B, p.sizes.T, 1, p.sizes.K}, arrangement::contiguous);
  down.grad_q = grad_q;
  CHECK_THROWS_WITH(palimpsa::scan_backward<Rule>(palimpsa::checkpointed{}, c.in, up, down, palimpsa::allocate), contains(sentence));
  CHECK((r.still_poisoned() && grad_q.still_poisoned()));
}

}  // namespace

// Planted: <= taken for <; choose() with its arguments exchanged; minimum that drops a NaN.
TEST_CASE("What a policy may say is the same for a number and for rows abreast") {
  check_pack<float, 4>();
  check_pack<double, 2>();
  check_pack<float, palimpsa::native_pack<float>::size>();
  check_pack<double, palimpsa::native_pack<double>::size>();
  check_row_set<float, 1>();
  check_row_set<float, 4>();
  CHECK((minimum(2.0, 1) == 1 && maximum(2.0, 1) == 2 && select(true, 1, 2.0) == 1));
  static_assert(std::is_same_v<decltype(minimum(2.0f, 0.5)), float> && std::is_same_v<decltype(select(true, 1, 2.0f)), float>);
  double const nan = std::numeric_limits<double>::quiet_NaN();
  CHECK((std::isnan(minimum(nan, 1)) && std::isnan(maximum(nan, 1))));
}

// Planted: the cap left out; the floor's slope not cut.
TEST_CASE("A gain with a cap, and one with a floor, on every path of the CPU") {
  check_forward<capped_kalman>(true);
  check_forward<floored_longhorn>(false);
}
TEST_CASE("The gradients of a gain with a cap, and of one with a floor") {
  check_gradients<capped_kalman>(true);
  check_gradients<floored_longhorn>(false);
}

// Planted: check_policies left out of check_shapes.
TEST_CASE("A policy that reads the sum over the keys and denies it is refused by the first call, before anything is written") {
  using palimpsa::rule;
  check_refused<rule<palimpsa::memory::nothing, palimpsa::evidence::full, silent_gain>>("at(lanes, own, all) of this rule's gain policy");
  check_refused<rule<palimpsa::memory::nothing, silent_evidence, palimpsa::gain::plain>>("seen(own, all) of this rule's evidence policy");
}
