#pragma once
// The definition behind run_twin_of, for the units that instantiate it.

#include <stdexcept>

#include "palimpsa/storage_eigen.hpp"
#include "cuda/rule_types.hpp"
#include "cuda/twin.hpp"

namespace palimpsa_test {
namespace detail {

template <kind Write, gates Forget, bool Preweighted, class Storage>
void run_twin_as(palimpsa::cuda::row_problem<Storage> const& p, palimpsa::cuda::twin_solver solver) {
  if constexpr (has_twin<Storage>({Write, Forget, Preweighted}))
    palimpsa::cuda::run_twin<rule_type<Write, Forget, Preweighted>>(p, solver);
  else
    throw std::logic_error("twin_of.hpp does not instantiate this rule");
}

}  // namespace detail

template <kind Write, class Storage>
void run_twin_of(rule_name rule, palimpsa::cuda::row_problem<Storage> const& p, palimpsa::cuda::twin_solver solver) {
  if (rule.preweighted) return detail::run_twin_as<Write, gates::head, true>(p, solver);
  switch (rule.forget) {
    case gates::none: return detail::run_twin_as<Write, gates::none, false>(p, solver);
    case gates::constant: return detail::run_twin_as<Write, gates::constant, false>(p, solver);
    case gates::head: return detail::run_twin_as<Write, gates::head, false>(p, solver);
    case gates::key: return detail::run_twin_as<Write, gates::key, false>(p, solver);
  }
}

#define PALIMPSA_TEST_INSTANTIATE_TWIN(write)                                                                                       \
  template void run_twin_of<write>(rule_name, palimpsa::cuda::row_problem<float> const&, palimpsa::cuda::twin_solver);              \
  template void run_twin_of<write>(rule_name, palimpsa::cuda::row_problem<Eigen::bfloat16> const&, palimpsa::cuda::twin_solver);    \
  template void run_twin_of<write>(rule_name, palimpsa::cuda::row_problem<Eigen::half> const&, palimpsa::cuda::twin_solver);

}  // namespace palimpsa_test
