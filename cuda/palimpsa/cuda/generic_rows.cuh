#pragma once
/// @file
/// cuda::sequential for rules whose rows need nothing from the head: launches row_kernel with the tile that K asks for.

#include <climits>

#include "palimpsa/cuda/dispatch.cuh"
#include "palimpsa/cuda/row_kernel.cuh"
#include "palimpsa/workspace.hpp"

namespace palimpsa::cuda {
inline namespace PALIMPSA_CUDA_ABI {

/// Launches the rows of a problem.
template <class Rule, class Storage>
void launch_rows(sequential const& how, row_problem<Storage> const& problem, int device) {
  with_tile(problem.shape.keys, [&](auto t) {
    using tile_type = decltype(t);
    std::int64_t const tasks = task_count<tile_type>(problem.shape);
    if (tasks == 0) return;
    auto const blocks = static_cast<unsigned>(tasks < INT_MAX ? tasks : INT_MAX);
    auto const run = [&](auto variance) {
      detail::launch(&row_kernel<Rule, decltype(variance)::value, tile_type, Storage>, problem, blocks, tile_type::threads, 0,
                     device, how.stream);
    };
    if constexpr (Rule::keeps_diagonal) {
      if (problem.out_variance.present()) return run(std::true_type{});
    }
    run(std::false_type{});
  });
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
