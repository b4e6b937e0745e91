// Where two rules of the family must agree, whatever the numbers.

#include "support/call.hpp"

using namespace palimpsa_test;

namespace {

/// The same numbers under another rule. What the rule does not keep is dropped.
problem as(problem p, kind write) {
  p.rule.write = write;
  if (!p.rule.keeps_precision()) p.prior.clear(), p.initial_evidence.clear();
  return p;
}

/// Sizes for one gate and one β a head.
recipe per_head(std::uint64_t n) {
  recipe r = any_sizes(n);
  r.beta = beta_shape::head;
  r.prior_per_key = false;
  return r;
}

/// A problem whose J is the same diagonal for every row of a head, J = diag(d), and the same as MesaNet's K×K matrix.
struct diagonal_start {
  problem diagonal, full;
};

diagonal_start draw_diagonal_start(recipe const& r, std::uint64_t n) {
  problem p = draw({kind::palimpsa}, r, n);
  problem full = as(p, kind::mesa_net);
  std::int64_t const heads = p.sequences() * r.HV;
  full.initial_evidence.assign(static_cast<std::size_t>(heads * r.K * r.K), 0);
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t j = 0; j < r.K; ++j) {
      double const d = p.initial_evidence[static_cast<std::size_t>(h * r.V * r.K + j)];
      for (std::int64_t i = 0; i < r.V; ++i) p.initial_evidence[static_cast<std::size_t>((h * r.V + i) * r.K + j)] = d;
      full.initial_evidence[static_cast<std::size_t>((h * r.K + j) * r.K + j)] = d;
    }
  return {p, full};
}

template <class Storage>
void check_one_hot(std::uint64_t n) {
  recipe r = per_head(n);
  r.one_hot_keys = true;
  auto [diagonal, full] = draw_diagonal_start(r, n);
  diagonal = rounded<Storage>(diagonal), full = rounded<Storage>(full);
  INFO(diagonal);
  double const bound = 2 * arithmetic_bound<typename palimpsa::storage<Storage>::scalar>(r.T);
  auto const palimpsa = call<Storage>(diagonal).run(), mesa = call<Storage>(full).run(),
             kalman = call<Storage>(as(diagonal, kind::diagonal_kalman)).run();
  PALIMPSA_TEST_CLOSE("out of MesaNet", mesa.out.values(), palimpsa.out.values(), bound);
  PALIMPSA_TEST_CLOSE("variance of MesaNet", mesa.out_variance.values(), palimpsa.out_variance.values(), bound);
  PALIMPSA_TEST_CLOSE("eta of MesaNet", mesa.final_eta.values(), palimpsa.final_eta.values(), bound);
  PALIMPSA_TEST_CLOSE("out of DiagonalKalman", kalman.out.values(), palimpsa.out.values(), bound);
  PALIMPSA_TEST_CLOSE("variance of DiagonalKalman", kalman.out_variance.values(), palimpsa.out_variance.values(), bound);
  PALIMPSA_TEST_CLOSE("eta of DiagonalKalman", kalman.final_eta.values(), palimpsa.final_eta.values(), bound);
  PALIMPSA_TEST_CLOSE("J of DiagonalKalman", kalman.final_evidence.values(), palimpsa.final_evidence.values(), bound);

  problem const delta = rounded<Storage>(draw({kind::implicit_delta}, [&] { r.beta = beta_shape::channel; return r; }(), n));
  auto const implicit = call<Storage>(delta).run(), longhorn = call<Storage>(as(delta, kind::longhorn)).run();
  PALIMPSA_TEST_CLOSE("out of Longhorn", longhorn.out.values(), implicit.out.values(), bound);
  PALIMPSA_TEST_CLOSE("eta of Longhorn", longhorn.final_eta.values(), implicit.final_eta.values(), bound);
}

template <class Storage>
void check_one_token(std::uint64_t n) {
  recipe r = per_head(n);
  r.T = 1, r.initial_state = false;
  problem p = rounded<Storage>(draw({kind::palimpsa}, r, n));
  p.prior.assign(p.prior.size(), 1);
  INFO(p);
  double const bound = 2 * arithmetic_bound<typename palimpsa::storage<Storage>::scalar>(1);
  numbers const implicit = call<Storage>(as(p, kind::implicit_delta)).run().out.values();
  PALIMPSA_TEST_CLOSE("MesaNet", call<Storage>(as(p, kind::mesa_net)).run().out.values(), implicit, bound);
  PALIMPSA_TEST_CLOSE("DiagonalKalman", call<Storage>(as(p, kind::diagonal_kalman)).run().out.values(), implicit, bound);
}

/// The distance of Palimpsa under this prior, values scaled by it, from Mamba2.
double distance_from_mamba(problem p, double prior) {
  numbers const mamba = call<double>(as(p, kind::mamba2)).run().out.values();
  for (double& x : p.prior) x = prior;
  for (double& x : p.v) x *= prior;
  for (double& x : p.initial_eta) x *= prior;
  return relative_error(call<double>(p).run().out.values(), mamba);
}

}  // namespace

// Planted: elementwise gain without its 1; prior read from the first head for every head.
TEST_CASE("One-hot keys: Palimpsa is MesaNet and DiagonalKalman, Longhorn is the implicit DeltaNet") {
  for (std::uint64_t n = 2000; n < 2020; ++n) check_one_hot<double>(n), check_one_hot<float>(n);
}

TEST_CASE("The first token at prior 1: MesaNet and DiagonalKalman are the implicit DeltaNet") {
  for (std::uint64_t n = 2100; n < 2120; ++n) check_one_token<double>(n), check_one_token<float>(n);
}

// Planted: the prior added to J once more at the read.
TEST_CASE("Palimpsa tends to Mamba2 as 1/prior") {
  for (std::uint64_t n = 2200; n < 2210; ++n) {
    problem const p = draw({kind::palimpsa}, any_sizes(n), n);
    INFO(p);
    double const far = distance_from_mamba(p, 1e3), near = distance_from_mamba(p, 1e4), nearer = distance_from_mamba(p, 1e5);
    CHECK(near / far == Approx(0.1).epsilon(0.05));
    CHECK(nearer / near == Approx(0.1).epsilon(0.05));
  }
}

// Planted: a gate of 1 taken for a masked one.
TEST_CASE("log_decay = 0 is no gate at all, and absent tensors are what they stand for, bit by bit") {
  std::uint64_t n = 2300;
  for (kind write : every_kind) {
    recipe r = any_sizes(++n);
    r.beta = beta_shape::absent, r.initial_state = false, r.gated = false;
    problem const p = draw({write}, r, n);
    INFO(p);
    results<double> const bare = call<double>(p).run();
    for (int combination = 0; combination < 16; ++combination) {
      recipe some = r;
      if (combination & 1) some.beta = beta_shape::channel;
      if (combination & 2) some.gated = true, some.log_decays = {0};
      if (combination & 4) some.initial_state = true;
      problem full = draw({write}, some, n);
      full.beta.assign(full.beta.size(), 1);
      full.initial_eta.assign(full.initial_eta.size(), 0);
      full.initial_evidence.assign(full.initial_evidence.size(), 0);
      full.q = p.q, full.k = p.k, full.v = p.v, full.prior = p.prior;
      call<double> c(full);
      if (combination & 8) c.in.initial_evidence = {};
      INFO("combination " << combination);
      CHECK(same_bits(bare, c.run()));
    }
    for (gates forget : {gates::none, gates::key})
      if (rule_name const other{write, forget}; instantiated<double>(other)) {
        problem q = p;
        q.rule = other;
        q.sizes.gated = forget == gates::key;
        q.log_decay.assign(static_cast<std::size_t>(q.sizes.gated ? r.B * r.T * r.HV * r.K : 0), 0);
        CHECK(same_bits(bare, call<double>(q).run()));
      }
  }
}

// Planted: out_variance written only with a final state; final J dropped when final η is absent.
TEST_CASE("Absent outputs change nothing in those that are there") {
  std::uint64_t n = 2400;
  for (kind write : every_kind) {
    ++n;
    problem const p = draw({write}, any_sizes(n), n);
    INFO(p);
    call<double> const c(p);
    results<double> const all = c.run();
    for (int present = 0; present < 8; ++present) {
      results<double> some = c.outputs();
      if (!(present & 1)) some.out_variance = {};
      if (!(present & 2)) some.final_eta = {};
      if (!(present & 4)) some.final_evidence = {};
      c.run(some);
      INFO("present " << present);
      CHECK(some.out.bits() == all.out.bits());
      if (present & 1) CHECK(some.out_variance.bits() == all.out_variance.bits());
      if (present & 2) CHECK(some.final_eta.bits() == all.final_eta.bits());
      if (present & 4) CHECK(some.final_evidence.bits() == all.final_evidence.bits());
    }
  }
}

TEST_CASE("A gate per key of equal gates is a gate per head, and one constant gate is that gate at every token") {
  std::uint64_t n = 2500;
  for (kind write : every_kind) {
    recipe const r = any_sizes(++n);
    problem const head = draw({write}, r, n);
    INFO(head);
    if (instantiated<double>({write, gates::key})) {
      problem key = head;
      key.rule.forget = gates::key;
      key.log_decay.clear();
      for (double g : head.log_decay) key.log_decay.insert(key.log_decay.end(), static_cast<std::size_t>(r.K), g);
      CHECK(same_bits(call<double>(head).run(), call<double>(key).run()));
    }
    if (instantiated<double>({write, gates::constant})) {
      problem constant = head, repeated = head;
      constant.rule.forget = gates::constant;
      constant.log_decay.clear();
      for (std::int64_t h = 0; h < r.HV; ++h) constant.log_decay.push_back(-0.1 * static_cast<double>(h));
      for (std::size_t i = 0; i < repeated.log_decay.size(); ++i) repeated.log_decay[i] = constant.log_decay[i % constant.log_decay.size()];
      CHECK(same_bits(call<double>(constant).run(), call<double>(repeated).run()));
    }
  }
}

// Planted: J decayed before the prior is taken off, I ← αI + βk².
TEST_CASE("Forgetting pulls the importance back to the prior at rate alpha, never below it") {
  for (kind write : {kind::palimpsa, kind::diagonal_kalman, kind::mesa_net})
    for (std::uint64_t n = 2600; n < 2606; ++n) {
      recipe r = any_sizes(n);
      problem p = draw({write}, r, n);
      INFO(p);
      numbers const J = call<double>(p).run().final_evidence.values();
      if (write != kind::mesa_net) CHECK(*std::min_element(J.begin(), J.end()) >= 0);
      // Keys of 0 bring no evidence: what is left is the share that the gates left of it.
      for (double& x : p.k) x = 0;
      for (double& x : p.log_decay) x = x < -3 ? -3 : x;
      numbers expected = p.initial_evidence;
      std::int64_t const head_size = p.evidence_rows() * r.K;
      for (std::size_t c = 0; c < expected.size(); ++c) {
        std::int64_t const head = static_cast<std::int64_t>(c) / head_size, b = head / r.HV, h = head % r.HV;
        double sum = 0;
        for (std::int64_t t = 0; t < r.T; ++t) sum += p.log_decay[static_cast<std::size_t>((b * r.T + t) * r.HV + h)];
        expected[c] *= std::exp(sum);
      }
      PALIMPSA_TEST_CLOSE("J", call<double>(p).run().final_evidence.values(), expected, arithmetic_bound<double>(r.T));
    }
}

TEST_CASE("A gate that underflows leaves nothing at all") {
  for (kind write : every_kind)
    for (double log_decay : {-800.0, -1000.0, -std::numeric_limits<double>::infinity()}) {
      problem p = draw({write}, any_sizes(2700), 2700);
      INFO(p);
      for (double& x : p.k) x = 0;
      for (double& x : p.log_decay) x = log_decay;
      results<double> const x = call<double>(p).run();
      CHECK(x.final_eta.values() == numbers(p.initial_eta.size(), 0));
      CHECK(x.final_evidence.values() == numbers(p.initial_evidence.size(), 0));
      CHECK(x.out.values() == numbers(p.v.size(), 0));
    }
}

TEST_CASE("The read is linear in the query, whatever its size, to the bit") {
  for (kind write : every_kind)
    for (double factor : {0x1p-60, 0x1p60}) {
      problem const p = draw({write}, any_sizes(2800), 2800);
      INFO(p);
      problem scaled = p;
      for (double& x : scaled.q) x *= factor;
      numbers expected = call<double>(p).run().out.values();
      for (double& x : expected) x *= factor;
      CHECK(call<double>(scaled).run().out.values() == expected);
    }
}

TEST_CASE("scale multiplies the read and, squared, its variance; the state does not see it") {
  for (kind write : every_kind) {
    problem const p = draw({write}, any_sizes(2900), 2900);
    INFO(p);
    problem scaled = p;
    scaled.sizes.scale *= -4;
    results<double> const x = call<double>(p).run(), y = call<double>(scaled).run();
    numbers out = x.out.values(), variance = x.out_variance.values();
    for (double& a : out) a *= -4;
    for (double& a : variance) a *= 16;
    CHECK((y.out.values() == out && y.out_variance.values() == variance));
    CHECK((y.final_eta.bits() == x.final_eta.bits() && y.final_evidence.bits() == x.final_evidence.bits()));
  }
}
