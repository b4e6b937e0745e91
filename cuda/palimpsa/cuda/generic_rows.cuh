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

/// Parts of a head that a block of a step takes: all of them where heads alone fill the GPU, fewer where they do not.
template <class Tile>
int parts_a_task(scan_shape const& s, int device) {
  std::int64_t const parts = parts_of<Tile>(s), heads = s.sequences * s.value_heads;
  std::int64_t const wanted = static_cast<std::int64_t>(detail::attribute(cudaDevAttrMultiProcessorCount, device)) * Tile::blocks * 2;
  std::int64_t const fill = parts * heads / wanted;
  return static_cast<int>(fill < 1 ? 1 : fill < parts ? fill : parts);
}

/// A grid for so many tasks; kernels loop where there are more.
inline unsigned block_count(std::int64_t tasks) { return static_cast<unsigned>(tasks < INT_MAX ? tasks : INT_MAX); }

/// Calls f with std::true_type if the variance of the read is wanted from a rule that has one per row, else std::false_type.
template <class Rule, class Storage, class F>
void with_variance(row_problem<Storage> const& problem, F f) {
  if constexpr (Rule::keeps_diagonal) {
    if (problem.out_variance.present()) return f(std::true_type{});
  }
  f(std::false_type{});
}

/// Launches the rows of a problem: a scan's staged, a step's direct.
template <class Rule, class Storage>
void launch_rows(sequential const& how, row_problem<Storage> const& problem, int device) {
  if (problem.shape.sequences == 0) return;
  with_variance<Rule>(problem, [&](auto variance) {
    constexpr bool wanted = decltype(variance)::value;
    if (problem.pooled) {
      with_step_tile(problem.shape.keys, [&](auto tile_value) {
        using tile_type = decltype(tile_value);
        int const parts = parts_a_task<tile_type>(problem.shape, device);
        std::int64_t const runs = (parts_of<tile_type>(problem.shape) + parts - 1) / parts;
        detail::launch(&direct_kernel<Rule, wanted, tile_type, Storage>,
                       block_count(problem.shape.sequences * problem.shape.value_heads * runs), tile_type::threads, 0, device,
                       how.stream, problem, parts);
      });
    } else {
      with_tile(problem.shape.keys, [&](auto tile_value) {
        using tile_type = decltype(tile_value);
        detail::launch(&row_kernel<Rule, wanted, tile_type, Storage>, block_count(task_count<tile_type>(problem.shape)),
                       tile_type::threads, 0, device, how.stream, problem);
      });
    }
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
