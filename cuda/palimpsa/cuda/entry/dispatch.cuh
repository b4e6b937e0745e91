#pragma once
/// @file
/// Which kernels run a rule: chosen at compile time from the algebra of its transition and its read, never from its name.
/// To add a specialised kernel, write one file with a specialisation of `implementation` and include it below.

#include <cstddef>

#include "palimpsa/cuda/execution.cuh"
#include "palimpsa/traits.hpp"

namespace palimpsa::cuda {
namespace detail {
template <class>
inline constexpr bool always_false = false;
}

inline namespace PALIMPSA_CUDA_ABI {

/// What runs a rule with transition T and read R under the execution tag How. The primary template says what there is.
template <class How, transition T, read_kind R>
struct implementation {
  static_assert(detail::always_false<How>,
                "palimpsa::cuda: no kernel exists for this execution tag, transition and read. There are: cuda::sequential with a "
                "scalar, per-key, diagonal or rank-one transition and a mean or diagonal read (generic_rows.cuh); "
                "cuda::sequential with a scalar transition and a solved read (generic_heads.cuh)");
};

/// The implementation of a rule.
template <class How, any_rule Rule>
using implementation_of = implementation<How, transition_of<Rule>, read_of<Rule>>;

}  // namespace PALIMPSA_CUDA_ABI

}  // namespace palimpsa::cuda

#include "palimpsa/cuda/sequential/generic_heads.cuh"
#include "palimpsa/cuda/sequential/generic_rows.cuh"
