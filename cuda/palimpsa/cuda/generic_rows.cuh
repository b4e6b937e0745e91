#pragma once
/// @file
/// cuda::sequential for rules whose rows need nothing from the head: launches row_kernel (a scan) or direct_kernel
/// (a step) with the tile that K asks for.

#include <climits>

#include "palimpsa/cuda/direct_kernel.cuh"
#include "palimpsa/cuda/dispatch.cuh"
#include "palimpsa/cuda/row_kernel.cuh"
#include "palimpsa/workspace.hpp"

namespace palimpsa::cuda {
inline namespace PALIMPSA_CUDA_ABI {

/// A grid for so many tasks; kernels loop where there are more.
inline unsigned block_count(std::int64_t tasks) { return static_cast<unsigned>(tasks < INT_MAX ? tasks : INT_MAX); }

/// Launches the rows of a problem: a scan's staged, a step's direct.
template <class Rule, class Storage>
void launch_rows(sequential const& how, row_problem<Storage> const& problem, int device) {
  if (problem.pooled) {
    with_step_tile(problem.shape.keys, [&](auto tile_value) {
      using tile_type = decltype(tile_value);
      std::int64_t const tasks = task_count<tile_type>(problem.shape);
      if (tasks > 0)
        detail::launch(&direct_kernel<Rule, tile_type, Storage>, problem, block_count(tasks), tile_type::threads, 0, device,
                       how.stream);
    });
  } else {
    with_tile(problem.shape.keys, [&](auto tile_value) {
      using tile_type = decltype(tile_value);
      std::int64_t const tasks = task_count<tile_type>(problem.shape);
      auto const run = [&](auto variance) {
        if (tasks > 0)
          detail::launch(&row_kernel<Rule, decltype(variance)::value, tile_type, Storage>, problem, block_count(tasks),
                         tile_type::threads, 0, device, how.stream);
      };
      if constexpr (Rule::keeps_diagonal) {
        if (problem.out_variance.present()) return run(std::true_type{});
      }
      run(std::false_type{});
    });
  }
}

}  // namespace PALIMPSA_CUDA_ABI

namespace detail {

/// Rows that stand alone need no workspace.
struct generic_rows {
  template <class Rule, class Storage>
  static std::size_t workspace_bytes(sequential const&, row_problem<Storage> const&, int) {
    return 0;
  }
  template <class Rule, class Storage>
  static void run(sequential const& how, row_problem<Storage> const& problem, workspace, int device) {
    launch_rows<Rule>(how, problem, device);
  }
};

}  // namespace detail

/// Rules that remember nothing of the precision.
template <transition T>
struct implementation<sequential, T, read_kind::mean> : detail::generic_rows {};
/// Rules that remember its diagonal.
template <transition T>
struct implementation<sequential, T, read_kind::diagonal> : detail::generic_rows {};

}  // namespace palimpsa::cuda
