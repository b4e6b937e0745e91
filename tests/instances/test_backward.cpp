// All gradients of every rule, every element, against dual numbers: every way to forget, both weightings, every shape of β, initial
// states or none, K ≠ V, grouped heads, packed sequences, gates from 0 to -inf in one sequence.

#include "instances/backward_call.hpp"
#include "palimpsa/storage_eigen.hpp"

using namespace palimpsa_test;

namespace {

/// Small, since the oracle runs once per input element.
std::vector<recipe> small_recipes() {
  std::vector<recipe> all;
  auto const add = [&](auto change) {
    recipe r;
    r.B = 1, r.T = 7, r.HK = 1, r.HV = 2, r.K = 3, r.V = 2;
    change(r);
    all.push_back(r);
  };
  add([](recipe&) {});
  add([](recipe& r) { r.B = 2, r.T = 5, r.HK = 2, r.K = 2, r.V = 3, r.beta = beta_shape::head; });
  add([](recipe& r) { r.lengths = {0, 3, 1, 0, 5, 0}, r.HK = 1, r.HV = 3, r.K = 5, r.V = 1, r.prior_per_key = true; });
  add([](recipe& r) { r.T = 9, r.HV = 1, r.K = 4, r.V = 5, r.initial_state = false, r.beta = beta_shape::absent, r.gated = false; });
  add([](recipe& r) { r.T = 12, r.K = 1, r.V = 1, r.scale = -1.3, r.beta = beta_shape::head, r.repeated_keys = true; });
  add([](recipe& r) { r.T = 8, r.K = 5, r.one_hot_keys = true, r.repeated_keys = true; });
  return all;
}

template <class Storage>
void check_rule(rule_name rule, std::uint64_t n, double storage_error = 0) {
  for (recipe const& r : small_recipes()) {
    problem const p = rounded<Storage>(draw(rule, r, ++n));
    cotangent_values const up = rounded<Storage>(draw_cotangents(p));
    INFO(p);
    gradient_values const right = right_gradients(p, up);
    dice d(p.seed);
    for (std::int64_t chunk : {1, 3, 64}) {
      INFO("chunk " << chunk);
      backward_call<Storage> const c(p, up, d.pick(every_arrangement));
      check_right(c.run({chunk, 1}, d.pick(every_arrangement)), right, p, storage_error);
    }
  }
}

}  // namespace

TEST_CASE("Gradients of every rule in double are those of dual numbers", "[backward]") {
  std::uint64_t n = 10000;
  for (rule_name rule : every_backward<double>()) check_rule<double>(rule, n += 100);
}

TEST_CASE("Gradients of every rule in float are those of dual numbers", "[backward]") {
  std::uint64_t n = 20000;
  for (rule_name rule : every_backward<float>()) check_rule<float>(rule, n += 100);
}

TEST_CASE("Gradients of 16-bit storage are those of the rounded inputs, rounded once", "[backward]") {
  std::uint64_t n = 30000;
  for (rule_name rule : every_backward<Eigen::bfloat16>()) check_rule<Eigen::bfloat16>(rule, n += 100, 0x1p-8);
  for (rule_name rule : every_backward<Eigen::half>()) check_rule<Eigen::half>(rule, n += 100, 0x1p-11);
}
