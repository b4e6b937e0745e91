// Every case file on the GPU, by scan and by one-token steps, in every type that is compiled.

#include "cuda/cases.hpp"
#include "cuda/device_call.hpp"

using namespace palimpsa_test;

namespace {

/// The right values of a case for a storage type: the file's, or the oracle's from rounded inputs.
template <class Storage>
right_values right_for(known_case const& c, problem const& p) {
  right_values right = oracle(p);
  if (sizeof(Storage) < 4) return right;
  double const condition = right.condition;
  right = c.answer;
  right.condition = condition;
  return right;
}

/// Calls f(name, problem, right values, Storage) for every case and type whose rule is compiled; returns how many there were.
template <class F>
int each_case(F f) {
  std::vector<known_case> const cases = known_cases();
  REQUIRE(cases.size() >= 58);
  int ran = 0;
  for (known_case const& c : cases)
    each_storage([&]<class Storage>(Storage storage) {
      if (!has_gpu<Storage>(c.question.rule)) return;
      problem const p = as_stored<Storage>(c.question);
      INFO(c.name << ": " << p << ", " << palimpsa::storage<Storage>::name);
      f(p, right_for<Storage>(c, p), storage);
      ++ran;
    });
  return ran;
}

}  // namespace

// Fault it catches: a kernel whose CG stops at 1e-3, whose gate comes after the write, whose lanes sum one term twice.
TEST_CASE("GPU: every case file by scan") {
  PALIMPSA_TEST_NEEDS_GPU();
  int const ran = each_case([]<class Storage>(problem const& p, right_values const& right, Storage) {
    gpu_outputs<Storage> out(p, layout::aligned, layout::aligned, !right.out_variance.empty());
    if (right.final_eta.empty()) out.final_eta = {};
    if (right.final_evidence.empty()) out.final_evidence = {};
    CHECK(gpu_scan(p.rule, gpu_inputs<Storage>(p), out) == 0);
    check_scan(out, right, p);
  });
  CHECK(ran >= 58 + 40);
}

// Fault it catches: a state rounded to 16 bits between steps; a read before the write.
TEST_CASE("GPU: every case file by steps of one token") {
  PALIMPSA_TEST_NEEDS_GPU();
  int const ran = each_case([]<class Storage>(problem const& p, right_values right, Storage) {
    gpu_outputs<Storage> out(p, layout::aligned, layout::aligned, !right.out_variance.empty());
    moving_states<Storage> states(p);
    CHECK(gpu_steps(p, gpu_inputs<Storage>(p), out, states, 1) == 0);
    out.final_eta = std::move(states.eta);
    out.final_evidence = std::move(states.evidence);
    right_values const all = oracle(p);
    if (right.final_eta.empty()) right.final_eta = all.final_eta;
    if (right.final_evidence.empty()) right.final_evidence = all.final_evidence;
    check_scan(out, right, p);
  });
  CHECK(ran >= 58 + 40);
}
