// Policies of a user's own through the kernels' host twin: rows of a thread in place of packs.

#include "core/capped_rules.hpp"
#include "cuda/laid_out.hpp"
#include "cuda/twin.hpp"
#include "palimpsa/cuda/sequential/row_twin.hpp"

using namespace palimpsa_test;

namespace {

template <class Rule>
void check_twin(bool capped, std::uint64_t n, std::int64_t K) {
  recipe s;
  s.HK = 1, s.HV = 2, s.V = 19, s.K = K, s.initial_state = false, s.key_size = 1.5;
  problem const p = as_stored<float>(draw({capped ? kind::diagonal_kalman : kind::longhorn}, s, n));
  INFO(p);
  laid_out<placed, float> const in(p, layout::aligned, layout::aligned, index_width::int64);
  written<placed, float> const out(p, layout::aligned, layout::aligned, false);
  unsigned status = 0;
  palimpsa::scan_shape const shape{s.B, s.T, s.HK, s.HV, s.K, s.V, p.sequences()};
  palimpsa::cuda::run_twin<Rule>(kernel_problem(in.inputs(), out.outputs(), shape, &status));
  CHECK(status == 0);
  PALIMPSA_TEST_CLOSE("out", out.out.values(), plain_reads(p, capped), arithmetic_bound<float>(p.longest()));
}

}  // namespace

// Fault seen: choose() of a row set with its arguments exchanged.
TEST_CASE("Twin: a gain with a cap, and one with a floor") {
  for (std::int64_t K : {5, 32}) {
    check_twin<capped_kalman>(true, 400000, K);
    check_twin<floored_longhorn>(false, 400001, K);
  }
}
