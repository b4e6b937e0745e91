#pragma once
/// @file
/// cuda::sequential for rules whose rows need nothing from the head: launches row_kernel (a scan), stream_kernel
/// or direct_kernel (a step) with the tile that K asks for.

#include "palimpsa/cuda/sequential/direct_kernel.cuh"
#include "palimpsa/cuda/entry/dispatch.cuh"
#include "palimpsa/cuda/sequential/row_kernel.cuh"
#include "palimpsa/cuda/sequential/stream_kernel.cuh"
#include "palimpsa/workspace.hpp"

namespace palimpsa::cuda {
inline namespace PALIMPSA_CUDA_ABI {

/// Whether a step is of one token, and every state of its pools can be moved 16 bytes at a time.
template <class Rule, class Storage>
bool streams(row_problem<Storage> const& p) {
  auto const aligned = [&](view<float const> const& pool) {
    return pool.stride[3] == 1 && p.shape.keys % 4 == 0 && pool.stride[0] % 4 == 0 && pool.stride[1] % 4 == 0 &&
           pool.stride[2] % 4 == 0 && reinterpret_cast<std::uintptr_t>(pool.data) % 16 == 0;
  };
  return p.shape.tokens == 1 && aligned(p.eta_in) && (!Rule::keeps_diagonal || aligned(p.evidence_in));
}

/// Parts of a head that a block of a step walks: several where that leaves a few dozen blocks for every place on the GPU (B128 H80
/// K128 V64 on an H200: 1 part 0.459 ms, 4 parts 0.343, 8 parts 0.347), one where there is little to do.
template <class Tile>
int parts_a_block(scan_shape const& s, int device) {
  std::int64_t const room = static_cast<std::int64_t>(detail::attribute(cudaDevAttrMultiProcessorCount, device)) * Tile::blocks;
  std::int64_t const parts = parts_of<Tile>(s), fill = parts * s.sequences * s.value_heads / (24 * room);
  return static_cast<int>(fill < 1 ? 1 : fill < parts ? fill : parts);
}

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
  if (problem.shape.sequences == 0 || (problem.pooled && problem.shape.tokens == 0)) return;
  with_variance<Rule>(problem, [&](auto variance) {
    constexpr bool wanted = decltype(variance)::value;
    if (problem.pooled) {
      with_step_tile(problem.shape.keys, [&](auto tile_value) {
        using tile_type = decltype(tile_value);
        int const parts = parts_of<tile_type>(problem.shape);
        auto const grid = [&](int blocks) { return detail::grid_of(blocks, problem.shape.value_heads, problem.shape.sequences); };
        if (streams<Rule>(problem)) {
          int const each = parts_a_block<tile_type>(problem.shape, device);
          launch(&stream_kernel<Rule, wanted, tile_type, Storage>, grid((parts + each - 1) / each), tile_type::threads, 0,
                         device, how.stream, problem, each);
        } else {
          launch(&direct_kernel<Rule, tile_type, Storage>, grid(parts), tile_type::threads, 0, device, how.stream,
                         problem);
        }
      });
    } else {
      with_tile(problem.shape.keys, [&](auto tile_value) {
        using tile_type = fitting_tile<Rule, decltype(tile_value), Storage>;
        launch(&row_kernel<Rule, wanted, tile_type, Storage>, detail::grid_of(parts_of<tile_type>(problem.shape), problem.shape.value_heads, problem.shape.sequences),
                       tile_type::threads, 0, device, how.stream, problem);
      });
    }
  });
}

/// Rows that stand alone need no workspace.
struct generic_rows {
  /// None.
  template <class Rule, class Storage>
  static std::size_t workspace_bytes(sequential const&, row_problem<Storage> const&, int) {
    return 0;
  }
  /// Launches on the stream of `how`.
  template <class Rule, class Storage>
  static void run(sequential const& how, row_problem<Storage> const& problem, workspace, int device) {
    launch_rows<Rule>(how, problem, device);
  }
};

/// Rules that remember nothing of the precision.
template <transition T>
struct implementation<sequential, T, read_kind::mean> : generic_rows {};
/// Rules that remember its diagonal.
template <transition T>
struct implementation<sequential, T, read_kind::diagonal> : generic_rows {};

}  // namespace PALIMPSA_CUDA_ABI
}  // namespace palimpsa::cuda
