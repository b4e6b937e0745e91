// Points of the family that have no name: any sensible combination runs, policies of a user's own too, on scalars and
// on packs.

#include <array>
#include <type_traits>

#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/longhorn.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/scan.hpp"
#include "support/call.hpp"

using namespace palimpsa_test;
namespace evidence = palimpsa::evidence;
namespace gain = palimpsa::gain;
namespace memory = palimpsa::memory;
using palimpsa::pack;
using palimpsa::rule;

namespace {

constexpr int keys = 11;

/// One row before and during one token.
struct row {
  std::array<double, keys> eta, J, key, query;
  double alpha, v, beta, prior;
};

row draw_row(std::uint64_t n) {
  dice d(seed_of(n));
  row r;
  for (double& x : r.eta) x = d.normal();
  for (double& x : r.J) x = d.uniform(0, 2);
  for (double& x : r.key) x = d.normal();
  for (double& x : r.query) x = d.normal();
  r.alpha = d.uniform(0, 1), r.v = d.normal(), r.beta = d.uniform(0, 1), r.prior = d.uniform(0.5, 2);
  return r;
}

template <class Rule> double observe(row& r) {
  palimpsa::token<double> const x{r.key.data(), r.query.data(), &r.alpha};
  return palimpsa::observe<Rule>(palimpsa::serial_lanes{keys}, r.eta.data(), r.J.data(), x, r.v, r.beta, r.prior).mean;
}

/// The row after the token, by μ_j = m_j + s_j (k_j/R_j)(βv - β c_j) with the policies as words: d(iagonal), f(ull),
/// n(othing), p(lain), e(lementwise), x: exact.
double expect(row& r, char memory_is, char evidence_is, char gain_is) {
  double read = 0, km = 0, kRk = 0;
  std::array<double, keys> R, m;
  for (std::size_t j = 0; j < keys; ++j) {
    R[j] = memory_is == 'd' ? r.prior + r.alpha * r.J[j] : 1;
    m[j] = r.alpha * r.eta[j] / R[j];
    km += r.key[j] * m[j];
    kRk += r.key[j] * r.key[j] / R[j];
  }
  for (std::size_t j = 0; j < keys; ++j) {
    double const k = r.key[j];
    double const c = evidence_is == 'f' ? km : evidence_is == 'd' ? k * m[j] : 0;
    double const s = gain_is == 'x' ? 1 / (1 + r.beta * kRk) : gain_is == 'e' ? 1 / (1 + r.beta * k * k / R[j]) : 1;
    double const mu = m[j] + s * k / R[j] * (r.beta * r.v - r.beta * c);
    if (memory_is == 'd') r.J[j] = r.alpha * r.J[j] + r.beta * k * k;
    r.eta[j] = mu * (memory_is == 'd' ? r.prior + r.J[j] : 1);
    read += mu * r.query[j];
  }
  return read;
}

template <class Memory, class Evidence, class Gain> void check_point(char memory_is, char evidence_is, char gain_is) {
  INFO(memory_is << evidence_is << gain_is);
  for (std::uint64_t n = 0; n < 20; ++n) {
    row x = draw_row(n), right = x;
    double const read = observe<rule<Memory, Evidence, Gain>>(x),
                 expected = expect(right, memory_is, evidence_is, gain_is);
    CHECK(read == Approx(expected).epsilon(1e-12).margin(1e-12));
    for (std::size_t j = 0; j < keys; ++j) {
      CHECK(x.eta[j] == Approx(right.eta[j]).epsilon(1e-12).margin(1e-12));
      CHECK(x.J[j] == Approx(right.J[j]).epsilon(1e-12));
    }
  }
}

template <class Memory, class Evidence> void check_gains(char memory_is, char evidence_is) {
  check_point<Memory, Evidence, gain::plain>(memory_is, evidence_is, 'p');
  check_point<Memory, Evidence, gain::elementwise>(memory_is, evidence_is, 'e');
  check_point<Memory, Evidence, gain::exact>(memory_is, evidence_is, 'x');
}

// The named policies under other names: the library does not know that their correction and gain cancel.
struct own_nothing : evidence::nothing {};
struct own_elementwise : gain::elementwise {};
using long_mamba2 = rule<memory::nothing, own_nothing, gain::plain>;
using long_palimpsa = rule<memory::diagonal, evidence::diagonal, own_elementwise>;
static_assert(palimpsa::Palimpsa::adds && !long_palimpsa::adds && palimpsa::Mamba2::adds && !long_mamba2::adds);

template <class Rule> results<double> scan_by(call<double> const& c) {
  results<double> r = c.outputs();
  palimpsa::scan<Rule>(palimpsa::sequential{1}, c.in, {r.out, r.out_variance, r.final_eta, r.final_evidence},
                       palimpsa::allocate);
  return r;
}

template <class Short, class Long> void check_same_write(kind write, std::uint64_t n) {
  recipe const r = any_sizes(n);
  problem const p = draw({write}, r, n);
  INFO(p);
  call<double> const c(p);
  results<double> const x = scan_by<Short>(c), y = scan_by<Long>(c);
  double const bound = arithmetic_bound<double>(r.T);
  PALIMPSA_TEST_CLOSE("out", y.out.values(), x.out.values(), bound);
  PALIMPSA_TEST_CLOSE("out_variance", y.out_variance.values(), x.out_variance.values(), bound);
  PALIMPSA_TEST_CLOSE("final_eta", y.final_eta.values(), x.final_eta.values(), bound);
  PALIMPSA_TEST_CLOSE("final_evidence", y.final_evidence.values(), x.final_evidence.values(), bound);
}

/// Rows abreast are rows one by one, bit by bit.
template <class Rule, class S> void check_pack(std::uint64_t n) {
  constexpr int width = static_cast<int>(16 / sizeof(S));  // a register that every x86-64 and ARMv8 has
  using rows = pack<S, width>;
  row const token_of = draw_row(n);
  std::array<S, keys> key, query;
  for (std::size_t j = 0; j < keys; ++j)
    key[j] = static_cast<S>(token_of.key[j]), query[j] = static_cast<S>(token_of.query[j]);
  S const alpha = static_cast<S>(token_of.alpha), prior = static_cast<S>(token_of.prior);
  palimpsa::token<S> const x{key.data(), query.data(), &alpha};
  std::array<rows, keys> eta{}, J{};
  rows v{}, beta{};
  std::array<std::array<S, keys>, width> eta_of, J_of;
  std::array<S, width> v_of, beta_of;
  for (int i = 0; i < width; ++i) {
    row const r = draw_row(100 * n + static_cast<std::uint64_t>(i));
    auto const l = static_cast<std::size_t>(i);
    v_of[l] = static_cast<S>(r.v), beta_of[l] = static_cast<S>(r.beta);
    v.set(i, v_of[l]), beta.set(i, beta_of[l]);
    for (std::size_t j = 0; j < keys; ++j) {
      eta_of[l][j] = static_cast<S>(r.eta[j]), J_of[l][j] = static_cast<S>(r.J[j]);
      eta[j].set(i, eta_of[l][j]), J[j].set(i, J_of[l][j]);
    }
  }
  palimpsa::serial_lanes const lanes{keys};
  auto const together = palimpsa::observe<Rule>(lanes, eta.data(), J.data(), x, v, beta, prior).mean;
  for (int i = 0; i < width; ++i) {
    auto const l = static_cast<std::size_t>(i);
    S const alone =
        palimpsa::observe<Rule>(lanes, eta_of[l].data(), J_of[l].data(), x, v_of[l], beta_of[l], prior).mean;
    CHECK(together[i] == alone);
    for (std::size_t j = 0; j < keys; ++j) CHECK((eta[j][i] == eta_of[l][j] && J[j][i] == J_of[l][j]));
  }
}

}  // namespace

// Planted: `adds` true for every elementwise gain; gain and evidence exchanged in the correction.
TEST_CASE("Every sensible point is the one line of the recurrence") {
  check_gains<memory::nothing, evidence::nothing>('n', 'n');
  check_gains<memory::nothing, evidence::diagonal>('n', 'd');
  check_gains<memory::nothing, evidence::full>('n', 'f');
  check_gains<memory::diagonal, evidence::diagonal>('d', 'd');
  check_gains<memory::diagonal, evidence::full>('d', 'f');
}

TEST_CASE("The bare sum is the correction where the two cancel") {
  for (std::uint64_t n = 0; n < 5; ++n) {
    check_same_write<palimpsa::Palimpsa, long_palimpsa>(kind::palimpsa, n);
    check_same_write<palimpsa::Mamba2, long_mamba2>(kind::mamba2, n);
  }
}

TEST_CASE("Rows abreast are rows one by one, bit by bit") {
  for (std::uint64_t n = 0; n < 5; ++n) {
    check_pack<palimpsa::Mamba2, double>(n);
    check_pack<palimpsa::Palimpsa, float>(n);
    check_pack<palimpsa::Longhorn, double>(n);
    check_pack<palimpsa::GatedDeltaNet, float>(n);
    check_pack<palimpsa::DiagonalKalman, double>(n);
  }
}
