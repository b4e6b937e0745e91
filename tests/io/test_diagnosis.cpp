// Mistakes that kernels make, planted one by one in a loop that shares nothing with the library, and named by the report.

#if defined(PALIMPSA_TEST_VERIFY)

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/io/check.hpp"
#include "support/catch.hpp"

namespace io = palimpsa::io;

namespace {

constexpr std::int64_t B = 2, T = 24, HK = 2, HV = 4, V = 6, K = 6;
constexpr double scale = 0.125;

double number_at(io::case_tensor<double> const& x, std::int64_t i) { return x.values[static_cast<std::size_t>(i)]; }

/// A case with everything in it that a kernel can get wrong. Numbers are floats.
io::case_file problem(bool palimpsa) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(0.1f, 1);
  auto const filled = [](std::vector<std::int64_t> const& shape, auto draw) {
    std::size_t n = 1;
    for (auto const extent : shape) n *= static_cast<std::size_t>(extent);
    io::case_tensor<double> x{shape, std::vector<double>(n), io::dtype::f32};
    for (double& y : x.values) y = draw();
    return x;
  };
  auto const any = [&] { return normal(random); };
  io::case_file p;
  p.name = "planted", p.rule = palimpsa ? "palimpsa" : "mamba2", p.scale = scale;
  p.q = filled({B, T, HK, K}, any), p.k = filled({B, T, HK, K}, any), p.v = filled({B, T, HV, V}, any);
  p.beta = filled({B, T, HV}, [&] { return uniform(random); });
  p.log_decay = filled({B, T, HV}, [&] { return -0.5f * uniform(random); });
  p.initial_eta = filled({B, HV, V, K}, any);
  if (palimpsa) p.prior = filled({HV}, [&] { return 0.5f + uniform(random); });
  return p;
}

/// What a kernel does otherwise than it should.
struct plant {
  bool read_first = false, interleaved = false, no_gate = false, base_two = false, no_state = false, transposed_state = false;
  bool twice_beta = false, no_beta = false, unit = false, prior_one = false, swapped = false;
  int gate_shift = 0;
};

/// out and final_eta of Mamba2 or Palimpsa: the recurrence as a loop over numbers.
void run_kernel(io::case_file& p, plant wrong) {
  io::case_tensor<double> out{{B, T, HV, V}, std::vector<double>(static_cast<std::size_t>(B * T * HV * V)), io::dtype::f32};
  io::case_tensor<double> last = *p.initial_eta;
  auto const& q = wrong.swapped ? *p.k : *p.q;
  auto const& k = wrong.swapped ? *p.q : *p.k;
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < HV; ++h)
      for (std::int64_t i = 0; i < V; ++i) {
        std::vector<double> eta(K), J(K);
        auto const place = ((b * HV + h) * V + i) * K;
        for (std::int64_t j = 0; j < K && !wrong.no_state; ++j)
          eta[static_cast<std::size_t>(j)] =
              wrong.transposed_state ? number_at(*p.initial_eta, ((b * HV + h) * V + j) * K + i) : number_at(*p.initial_eta, place + j);
        double const prior = p.prior && !wrong.prior_one ? number_at(*p.prior, h) : 1;
        for (std::int64_t t = 0; t < T; ++t) {
          auto const key = ((b * T + t) * HK + (wrong.interleaved ? h % HK : h / (HV / HK))) * K, value = (b * T + t) * HV + h;
          double const beta = wrong.no_beta ? 1 : number_at(*p.beta, value);
          std::int64_t const from = t + wrong.gate_shift;
          double gate = from < 0 || from >= T || wrong.no_gate ? 0 : number_at(*p.log_decay, (b * T + from) * HV + h);
          if (wrong.base_two) gate *= std::log(2.0);
          double unit = 0, sum = 0;
          for (std::int64_t j = 0; j < K; ++j) unit += number_at(k, key + j) * number_at(k, key + j);
          auto const read = [&] {
            for (std::size_t j = 0; j < K; ++j) sum += eta[j] / (p.prior ? prior + J[j] : 1) * number_at(q, key + static_cast<std::int64_t>(j));
          };
          if (wrong.read_first) read();
          for (std::size_t j = 0; j < K; ++j) {
            double const kj = number_at(k, key + static_cast<std::int64_t>(j)) / (wrong.unit ? std::sqrt(unit) : 1);
            eta[j] = std::exp(gate) * eta[j] + beta * (wrong.twice_beta ? beta : 1) * number_at(*p.v, value * V + i) * kj;
            J[j] = std::exp(gate) * J[j] + beta * kj * kj;
          }
          if (!wrong.read_first) read();
          out.values[static_cast<std::size_t>(value * V + i)] = static_cast<float>(scale * sum);
        }
        for (std::size_t j = 0; j < K; ++j) last.values[static_cast<std::size_t>(place) + j] = static_cast<float>(eta[j]);
      }
  p.out = out, p.final_eta = last;
}

io::tensor_report checked(io::case_file const& p, std::string const& tensor = "out") {
  auto const report = p.prior ? io::check_case<palimpsa::Palimpsa>(p) : io::check_case<palimpsa::Mamba2>(p);
  for (auto const& row : report.rows)
    if (row.tensor == tensor) return row;
  return {};
}

/// What the report says of a kernel with one mistake in it.
std::string said_of(plant wrong, bool palimpsa) {
  auto p = problem(palimpsa);
  run_kernel(p, wrong);
  return checked(p).diagnosis;
}

/// What it says of a right kernel whose out was changed.
std::string said_after(std::function<void(io::case_tensor<double>&)> const& change, std::string const& tensor = "out") {
  auto p = problem(true);
  run_kernel(p, {});
  REQUIRE(checked(p).outcome == io::verdict::ok);
  change(tensor == "out" ? *p.out : *p.final_eta);
  auto const row = checked(p, tensor);
  CHECK(row.outcome == io::verdict::failed);
  return row.diagnosis;
}

std::size_t at(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t i) {
  return static_cast<std::size_t>(((b * T + t) * HV + h) * V + i);
}

template <class F> void each(F f) {
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t t = 0; t < T; ++t)
      for (std::int64_t h = 0; h < HV; ++h)
        for (std::int64_t i = 0; i < V; ++i) f(b, t, h, i);
}

bool has(std::string const& text, std::string const& words) {
  if (text.find(words) == std::string::npos) UNSCOPED_INFO("\"" << text << "\"");
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a right kernel passes and is told nothing", "[io]") {
  for (bool const palimpsa : {false, true}) CHECK(said_of({}, palimpsa) == "");
}

TEST_CASE("mistakes inside the recurrence are named", "[io]") {
  for (bool const palimpsa : {false, true}) {
    INFO((palimpsa ? "Palimpsa" : "Mamba2"));
    auto const said = [&](auto set) {
      plant wrong;
      set(wrong);
      return said_of(wrong, palimpsa);
    };
    CHECK(has(said([](plant& p) { p.read_first = true; }), "read before the token's gate and write"));
    CHECK(has(said([](plant& p) { p.interleaved = true; }), "h mod HK"));
    CHECK(has(said([](plant& p) { p.no_gate = true; }), "log_decay is not applied"));
    CHECK(has(said([](plant& p) { p.base_two = true; }), "2^log_decay"));
    CHECK(has(said([](plant& p) { p.gate_shift = -1; }), "the token before"));
    CHECK(has(said([](plant& p) { p.gate_shift = 1; }), "log_decay is taken from the next token"));
    CHECK(has(said([](plant& p) { p.no_state = true; }), "initial state is not taken"));
    CHECK(has(said([](plant& p) { p.transposed_state = true; }), "initial state is taken transposed"));
    CHECK(has(said([](plant& p) { p.twice_beta = true; }), "beta multiplies v once too often"));
    CHECK(has(said([](plant& p) { p.no_beta = true; }), "beta is not applied"));
    CHECK(has(said([](plant& p) { p.unit = true; }), "k is made a unit vector"));
    CHECK(has(said([](plant& p) { p.swapped = true; }), "changed places"));
    if (palimpsa) CHECK(has(said([](plant& p) { p.prior_one = true; }), "the prior is 1"));
  }
}

TEST_CASE("one factor everywhere is named by what it is", "[io]") {
  auto const by = [](double factor) {
    return said_after([=](auto& out) { for (double& x : out.values) x *= factor; });
  };
  CHECK(has(by(1 / scale), "everywhere 8 times the right value, which is 1/scale: the scale is missing"));
  CHECK(has(by(scale), "which is the scale: it was applied once too often"));
  CHECK(has(by(scale * scale), "the scale's square"));
  CHECK(has(by(-1), "its sign is turned"));
  CHECK(has(by(1.7), "everywhere 1.7 times the right value"));
  CHECK(has(by(0), "all of it is 0"));
  auto p = problem(false);
  for (double& b : p.beta->values) b = 0.25;
  run_kernel(p, {});
  for (double& x : p.out->values) x *= 0.25;
  CHECK(has(checked(p).diagnosis, "which is beta: it was applied once too often"));
}

TEST_CASE("what has moved is named by where it went", "[io]") {
  CHECK(has(said_after([](auto& out) {
    auto const from = out.values;
    each([&](auto b, auto t, auto h, auto i) { out.values[at(b, t, h, i)] = t == 0 ? 0 : from[at(b, t - 1, h, i)]; });
  }), "the token before stands at every token"));
  CHECK(has(said_after([](auto& out) {
    auto const from = out.values;
    each([&](auto b, auto t, auto h, auto i) { out.values[at(b, t, h, i)] = from[at(b, t, h ^ 1, i)]; });
  }), "heads are in another order: head 0 holds head 1, head 1 holds head 0"));
  CHECK(has(said_after([](auto& out) {
    auto const from = out.values;
    each([&](auto b, auto t, auto h, auto i) { out.values[at(b, t, h, i)] = from[at(b, t, h / 2, i)]; });
  }), "heads repeat: head 1 holds head 0"));
  CHECK(has(said_after([](auto& eta) {
    auto const from = eta.values;
    for (std::size_t s = 0; s < from.size(); s += V * K)
      for (std::size_t i = 0; i < V; ++i)
        for (std::size_t j = 0; j < K; ++j) eta.values[s + j * V + i] = from[s + i * K + j];
  }, "final_eta"), "every state is transposed"));
}

TEST_CASE("where it is wrong is named, when it is wrong in one place", "[io]") {
  auto const noise = [](auto where) {
    return said_after([=](auto& out) {
      std::mt19937 random(3);
      std::normal_distribution<double> normal;
      each([&](auto b, auto t, auto h, auto i) { if (where(b, t, h)) out.values[at(b, t, h, i)] += normal(random); });
    });
  };
  CHECK(has(noise([](auto, auto, auto h) { return h == 2; }), "only head 2 of 4 is wrong"));
  CHECK(has(noise([](auto b, auto, auto) { return b == 1; }), "only sequence 1 of 2 is wrong"));
  CHECK(has(noise([](auto, auto t, auto) { return t >= 16; }), "right up to token 15, wrong from token 16 on"));
  CHECK(has(noise([](auto, auto t, auto) { return t == 5; }), "only token 5 is wrong"));
  CHECK(has(said_after([](auto& out) { each([&](auto b, auto t, auto h, auto i) { if (h == 3) out.values[at(b, t, h, i)] *= 2; }); }),
            "only head 3 of 4 is wrong: 2 times the right value"));
  CHECK(has(said_after([](auto& out) {
    each([&](auto b, auto t, auto h, auto i) {
      if (b == 1 && h == 2 && t >= 7) out.values[at(b, t, h, i)] = std::numeric_limits<double>::quiet_NaN();
    });
  }), "not finite from token 7 on in sequence 1, head 2"));
}

TEST_CASE("an honest error, however large or near the bound, is told nothing", "[io]") {
  for (double const size : {4e-6, 1e-5, 1e-3, 0.1, 1.0}) {
    for (unsigned seed = 1; seed <= 4; ++seed) {
      auto const said = said_after([=](auto& out) {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal;
        for (double& x : out.values) x *= 1 + size * normal(random) * (seed % 2 == 0 ? 1 : 1.5);
      });
      INFO(size << ", seed " << seed);
      CHECK(said == "");
    }
  }
}

TEST_CASE("a call in memory is checked without a file", "[io]") {
  auto p = problem(true);
  run_kernel(p, {});
  io::case_inputs<float> inputs(p);
  io::dense_tensor<float> out(p.out), eta(p.final_eta);
  auto const in = inputs.arguments();
  palimpsa::scan_outputs<float> yours;
  yours.out = out.as_view(), yours.final_eta = eta.as_view();
  auto report = io::check_kernel<palimpsa::Palimpsa>(in, yours);
  INFO(io::text_of(report));
  CHECK(io::passed(report));
  // A state kept K x V is reached through strides.
  std::vector<float> turned(eta.values.size());
  for (std::size_t s = 0; s < turned.size(); s += V * K)
    for (std::size_t i = 0; i < V; ++i)
      for (std::size_t j = 0; j < K; ++j) turned[s + j * V + i] = eta.values[s + i * K + j];
  yours.final_eta = {turned.data(), {B, HV, V, K}, {HV * V * K, V * K, 1, V}};
  CHECK(io::passed(io::check_kernel<palimpsa::Palimpsa>(in, yours)));
  for (float& x : out.values) x *= 2;
  report = io::check_kernel<palimpsa::Palimpsa>(in, yours);
  CHECK(!io::passed(report));
  CHECK(has(io::text_of(report), "everywhere 2 times the right value"));
  CHECK(io::passed(io::check_kernel<palimpsa::Palimpsa>(in, yours, 1.5)));
}

#else

#include "support/catch.hpp"

TEST_CASE("mistakes are named", "[io]") { SKIP("palimpsa-verify is not built"); }

#endif
