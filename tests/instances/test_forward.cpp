// Every rule, forward, against the oracle: sizes, packing, grouped heads, gates, optional tensors and memory
// arrangements at random, in every type.

#include "palimpsa/storage_eigen.hpp"
#include "support/call.hpp"

using namespace palimpsa_test;

namespace {

/// Sizes with a meaning: odd, above and below a pack, a tile, K ≠ V both ways, grouped heads, packed with empty
/// sequences.
std::vector<recipe> recipes() {
  std::vector<recipe> all;
  recipe r;
  all.push_back(r);
  r = {};
  r.B = 1, r.T = 65, r.HK = 1, r.HV = 3, r.K = 24, r.V = 33, r.prior_per_key = true;
  all.push_back(r);
  r = {};
  r.lengths = {0, 3, 1, 0, 0, 40, 1, 0}, r.HK = 2, r.HV = 4, r.K = 17, r.V = 16, r.beta = beta_shape::head;
  all.push_back(r);
  r = {};
  r.B = 3, r.T = 33, r.HK = 1, r.HV = 1, r.K = 1, r.V = 9, r.initial_state = false, r.beta = beta_shape::absent;
  all.push_back(r);
  r = {};
  r.B = 1, r.T = 34, r.HK = 3, r.HV = 3, r.K = 16, r.V = 1, r.repeated_keys = true;
  all.push_back(r);
  return all;
}

template <class Storage> void check_every_rule(double storage_error) {
  std::uint64_t n = 0;
  for (rule_name rule : every_rule<Storage>())
    for (recipe const& r : recipes()) {
      problem const p = rounded<Storage>(draw(rule, r, ++n));
      INFO(p);
      dice d(p.seed);
      arrangement const in = d.pick(every_arrangement), out = d.pick(every_arrangement);
      INFO("inputs " << in << ", outputs " << out);
      check_right(call<Storage>(p, in).run(out), oracle(p), p, storage_error);
    }
}

}  // namespace

TEST_CASE("Every rule is right in double") { check_every_rule<double>(0); }
TEST_CASE("Every rule is right in float") { check_every_rule<float>(0); }
TEST_CASE("Every rule is right with bfloat16 storage") { check_every_rule<Eigen::bfloat16>(std::ldexp(1.0, -8)); }
TEST_CASE("Every rule is right with half storage") { check_every_rule<Eigen::half>(std::ldexp(1.0, -11)); }

namespace {

/// 16-bit storage narrows `out` alone, and to the nearest value: everything else is what float storage of the same
/// inputs gives.
template <class Storage> void check_narrowed_once(double half_a_step, double least) {
  std::uint64_t n = 50;
  for (rule_name rule : every_rule<Storage>()) {
    problem const p = rounded<Storage>(draw(rule, any_sizes(++n), 51));
    INFO(p);
    results<Storage> const narrow = call<Storage>(p).run();
    results<float> const wide = call<float>(p).run();
    numbers const x = narrow.out.values(), right = wide.out.values();
    bool nearest = true;
    for (std::size_t i = 0; i < x.size(); ++i)
      nearest = nearest && std::fabs(x[i] - right[i]) <= half_a_step * (std::max)(std::fabs(right[i]), least);
    CHECK(nearest);
    CHECK(narrow.out_variance.bits() == wide.out_variance.bits());
    CHECK(narrow.final_eta.bits() == wide.final_eta.bits());
    CHECK(narrow.final_evidence.bits() == wide.final_evidence.bits());
  }
}

}  // namespace

TEST_CASE("16-bit storage narrows the output alone, to the nearest value") {
  check_narrowed_once<Eigen::bfloat16>(std::ldexp(1.0, -8), std::ldexp(1.0, -126));
  check_narrowed_once<Eigen::half>(std::ldexp(1.0, -11), std::ldexp(1.0, -14));
}
