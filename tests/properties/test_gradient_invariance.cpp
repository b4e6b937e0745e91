// What must not change a gradient: the chunk, the threads, how tensors lie, what memory held, what else is in the call.
// Bit by bit, in float, and with this machine's vector units in the executable that is compiled for them.

#include <array>

#include "instances/backward_call.hpp"

using namespace palimpsa_test;

namespace {

constexpr std::array<rule_name, 5> rules{{{kind::mamba2, gates::constant, false},
                                          {kind::delta, gates::key, false},
                                          {kind::palimpsa, gates::head, false},
                                          {kind::diagonal_kalman, gates::head, false},
                                          {kind::mesa_net, gates::head, false}}};

recipe mixed() {
  recipe r;
  r.B = 2, r.T = 41, r.HK = 2, r.HV = 4, r.K = 11, r.V = 18, r.beta = beta_shape::head;
  return r;
}

recipe packed() {
  recipe r = mixed();
  r.lengths = {0, 7, 1, 20, 0, 13};
  return r;
}

/// f(problem, cotangents) for each rule, whole and packed.
template <class F>
void each_problem(std::uint64_t n, F f) {
  for (rule_name rule : rules)
    for (recipe r : {mixed(), packed()}) {
      if (rule.write == kind::palimpsa) r.beta = beta_shape::channel;
      problem const p = rounded<float>(draw(rule, r, ++n));
      INFO(p);
      f(p, draw_cotangents(p));
    }
}

}  // namespace

TEST_CASE("Chunk and threads change no bit of a gradient", "[backward]") {
  each_problem(50000, [](problem const& p, cotangent_values const& up) {
    backward_call<float> const c(p, up);
    auto const one = c.run({8, 1});
    for (std::int64_t chunk : {1, 3, 20, 64, 1000000}) {
      INFO("chunk " << chunk);
      CHECK(same_bits(one, c.run({chunk, 1})));
    }
    for (int threads : {2, 3, 0}) {
      INFO("threads " << threads);
      CHECK(same_bits(one, c.run({8, threads})));
    }
  });
}

TEST_CASE("Strides and what memory held change no bit of a gradient", "[backward]") {
  each_problem(51000, [](problem const& p, cotangent_values const& up) {
    auto const one = backward_call<float>(p, up).run({8, 1});
    for (arrangement in : every_arrangement)
      for (arrangement out : {arrangement::contiguous, arrangement::padded, arrangement::reversed}) {
        INFO("inputs " << in << ", gradients " << out);
        auto const other = backward_call<float>(p, up, in).run({8, 1}, out);
        CHECK(same_bits(one, other));
        CHECK(other.gaps_untouched());
      }
    backward_call<float> const c(p, up);
    auto g = c.outputs();
    std::vector<std::byte> clean(backward_workspace(p.rule, {8, 1}, c.forward.in));
    run_backward(p.rule, {8, 1}, c.forward.in, c.up, g.views(), palimpsa::workspace(clean));
    CHECK(same_bits(one, g));
  });
}

TEST_CASE("An absent cotangent is zero, an absent gradient is not missed", "[backward]") {
  each_problem(52000, [](problem const& p, cotangent_values const& up) {
    for (auto which : {&cotangent_values::out, &cotangent_values::out_variance, &cotangent_values::final_eta,
                       &cotangent_values::final_evidence}) {
      if ((up.*which).empty()) continue;
      cotangent_values absent = up, zero = up;
      (absent.*which).clear();
      for (double& x : zero.*which) x = 0;
      CHECK(same_bits(backward_call<float>(p, absent).run(), backward_call<float>(p, zero).run()));
    }
    backward_call<float> const c(p, up);
    auto const all = c.run();
    for (int missing = 0; missing < 8; ++missing) {
      INFO("gradient " << missing << " absent");
      auto g = c.outputs();
      auto views = g.views();
      if (missing == 0) views.grad_q = {};
      if (missing == 1) views.grad_k = {};
      if (missing == 2) views.grad_v = {};
      if (missing == 3) views.grad_beta = {};
      if (missing == 4) views.grad_log_decay = {};
      if (missing == 5) views.grad_prior = {};
      if (missing == 6) views.grad_initial_eta = {};
      if (missing == 7) views.grad_initial_evidence = {};
      c.run(views, {4, 1});
      CHECK((missing == 0 ? g.q.still_poisoned() : g.q.bits() == all.q.bits()));
      CHECK((missing == 1 ? g.k.still_poisoned() : g.k.bits() == all.k.bits()));
      CHECK((missing == 2 ? g.v.still_poisoned() : g.v.bits() == all.v.bits()));
      CHECK((missing == 3 ? g.beta.still_poisoned() : g.beta.bits() == all.beta.bits()));
      CHECK((missing == 4 ? g.log_decay.still_poisoned() : g.log_decay.bits() == all.log_decay.bits()));
      CHECK((missing == 5 ? g.prior.still_poisoned() : g.prior.bits() == all.prior.bits()));
      CHECK((missing == 6 ? g.initial_eta.still_poisoned() : g.initial_eta.bits() == all.initial_eta.bits()));
      CHECK((missing == 7 ? g.initial_evidence.still_poisoned() : g.initial_evidence.bits() == all.initial_evidence.bits()));
    }
  });
}

TEST_CASE("A cotangent of stride zero is one number for all, and doubling cotangents doubles gradients", "[backward]") {
  each_problem(53000, [](problem const& p, cotangent_values up) {
    for (double& x : up.out) x = 0.75;
    backward_call<float> c(p, up);
    auto const one = c.run();
    float const everywhere = 0.75F;
    recipe const& s = p.sizes;
    c.up.grad_out = palimpsa::view<float const>(&everywhere, {s.B, s.T, s.HV, s.V}, {0, 0, 0, 0});
    CHECK(same_bits(one, c.run()));
    for (auto which : {&cotangent_values::out, &cotangent_values::out_variance, &cotangent_values::final_eta,
                       &cotangent_values::final_evidence})
      for (double& x : up.*which) x *= 2;
    auto const twice = backward_call<float>(p, up).run().values(), once = one.values();
    for (auto which : {&gradient_values::q, &gradient_values::k, &gradient_values::v, &gradient_values::beta,
                       &gradient_values::log_decay, &gradient_values::prior, &gradient_values::initial_eta,
                       &gradient_values::initial_evidence}) {
      numbers doubled = once.*which;
      for (double& x : doubled) x *= 2;
      CHECK(doubled == twice.*which);
    }
  });
}

TEST_CASE("The gradient of an initial state may take the place of the cotangent of the final one", "[backward]") {
  each_problem(54000, [](problem const& p, cotangent_values const& up) {
    auto const apart = backward_call<float>(p, up).run();
    backward_call<float> const c(p, up);
    auto g = c.outputs();
    auto views = g.views();
    views.grad_initial_eta = c.final_eta.view();
    if (p.rule.keeps_precision()) views.grad_initial_evidence = c.final_evidence.view();
    c.run(views, {4, 1});
    CHECK(c.final_eta.bits() == apart.initial_eta.bits());
    if (p.rule.keeps_precision()) CHECK(c.final_evidence.bits() == apart.initial_evidence.bits());
    CHECK(g.k.bits() == apart.k.bits());
  });
}

TEST_CASE("A NaN in one sequence and key head reaches no gradient of another", "[backward]") {
  for (rule_name rule : rules) {
    problem const clean = rounded<float>(draw(rule, mixed(), 55000));
    INFO(clean);
    recipe const& s = clean.sizes;
    cotangent_values const up = draw_cotangents(clean);
    problem p = clean;
    p.v[static_cast<std::size_t>((5 * s.HV + 1) * s.V + 2)] = std::numeric_limits<double>::quiet_NaN();  // row 0, value head 1
    auto const x = backward_call<float>(p, up).run().values(), right = backward_call<float>(clean, up).run().values();
    auto const check = [&](char const* name, numbers const& a, numbers const& b, std::int64_t heads, std::int64_t touched,
                           std::int64_t width) {
      bool spread = false, reached = false;
      for (std::size_t i = 0; i < a.size(); ++i) {
        auto const at = static_cast<std::int64_t>(i) / width, head = at % heads, row = at / heads / s.T;
        bool const own = row == 0 && head == touched;
        spread = spread || (!own && !(a[i] == b[i]));
        reached = reached || (own && a[i] != a[i]);
      }
      INFO(name);
      CHECK_FALSE(spread);
      return reached;
    };
    CHECK(check("grad_q", x.q, right.q, s.HK, 0, s.K));
    CHECK(check("grad_k", x.k, right.k, s.HK, 0, s.K));
    check("grad_v", x.v, right.v, s.HV, 1, s.V);
    check("grad_beta", x.beta, right.beta, s.HV, 1, static_cast<std::int64_t>(x.beta.size()) / (s.B * s.T * s.HV));
  }
}

TEST_CASE("Packed sequences have the gradients of separate calls", "[backward]") {
  for (rule_name rule : rules) {
    problem const p = rounded<float>(draw(rule, packed(), 56000));
    INFO(p);
    recipe const& s = p.sizes;
    cotangent_values const up = draw_cotangents(p);
    backward_call<float> const c(p, up);
    auto const all = c.run();
    numbers prior(p.prior.size()), constant(rule.forget == gates::constant ? static_cast<std::size_t>(s.HV) : 0);
    for (std::int64_t n = 0; n < p.sequences(); ++n) {
      std::int64_t const first = p.cu_seqlens[static_cast<std::size_t>(n)], length = p.cu_seqlens[static_cast<std::size_t>(n) + 1] - first;
      INFO("sequence " << n << " of " << length << " tokens");
      auto in = tokens_of(c.forward.in, first, length);
      in.cu_seqlens = {};
      in.initial_eta = narrow(in.initial_eta, 0, n, 1), in.initial_evidence = narrow(in.initial_evidence, 0, n, 1);
      auto cotangents = c.up;
      cotangents.grad_out = narrow(cotangents.grad_out, 1, first, length);
      cotangents.grad_out_variance = narrow(cotangents.grad_out_variance, 1, first, length);
      cotangents.grad_final_eta = narrow(cotangents.grad_final_eta, 0, n, 1);
      cotangents.grad_final_evidence = narrow(cotangents.grad_final_evidence, 0, n, 1);
      auto g = c.outputs();
      auto down = g.views();
      down.grad_q = narrow(down.grad_q, 1, first, length), down.grad_k = narrow(down.grad_k, 1, first, length);
      down.grad_v = narrow(down.grad_v, 1, first, length), down.grad_beta = narrow(down.grad_beta, 1, first, length);
      if (rule.forget != gates::constant) down.grad_log_decay = narrow(down.grad_log_decay, 1, first, length);
      down.grad_initial_eta = narrow(down.grad_initial_eta, 0, n, 1);
      down.grad_initial_evidence = narrow(down.grad_initial_evidence, 0, n, 1);
      auto scratch = scratch_of(backward_workspace(rule, {4, 1}, in));
      run_backward(rule, {4, 1}, in, cotangents, down, palimpsa::workspace(scratch));
      auto const same = [&](numbers const& alone, numbers const& together) {
        for (std::size_t i = 0; i < alone.size(); ++i)
          if (!std::isnan(alone[i]) && alone[i] != together[i]) return false;
        return true;
      };
      auto const x = g.values(), y = all.values();
      CHECK(same(x.q, y.q));
      CHECK(same(x.k, y.k));
      CHECK(same(x.v, y.v));
      CHECK(same(x.beta, y.beta));
      if (constant.empty()) CHECK(same(x.log_decay, y.log_decay));
      CHECK(same(x.initial_eta, y.initial_eta));
      CHECK(same(x.initial_evidence, y.initial_evidence));
      for (std::size_t i = 0; i < prior.size(); ++i) prior[i] += x.prior[i];
      for (std::size_t i = 0; i < constant.size(); ++i) constant[i] += x.log_decay[i];
    }
    PALIMPSA_TEST_CLOSE("grad_prior", all.prior.values(), prior, 1e-6);
    if (!constant.empty()) PALIMPSA_TEST_CLOSE("grad_log_decay", all.log_decay.values(), constant, 1e-6);
  }
}

TEST_CASE("Nothing to walk over: gradients of final states are those of initial ones, sums are zero", "[backward]") {
  for (rule_name rule : rules)
    for (bool no_tokens : {true, false}) {
      recipe r = mixed();
      (no_tokens ? r.T : r.B) = 0;
      problem const p = rounded<float>(draw(rule, r, 57000));
      INFO(p);
      cotangent_values const up = draw_cotangents(p);
      backward_call<float> const c(p, up);
      auto const x = c.run().values();
      CHECK(x.initial_eta == up.final_eta);
      if (rule.keeps_diagonal()) CHECK(x.initial_evidence == up.final_evidence);
      CHECK(x.prior == numbers(p.prior.size()));
      if (rule.forget == gates::constant) CHECK(x.log_decay == numbers(static_cast<std::size_t>(r.HV)));
      CHECK(x.q.empty());
    }
}
