#pragma once
/// @file
/// cuda::sequential for a full memory: the head stage solves x = Λ⁻¹q for every token into the workspace, then rows read η·x.

#include "palimpsa/cuda/entry/dispatch.cuh"
#include "palimpsa/cuda/sequential/generic_rows.cuh"
#include "palimpsa/cuda/sequential/head_kernel.cuh"
#include "palimpsa/workspace.hpp"

namespace palimpsa::cuda {
namespace detail {

/// How a head stage lies on a device.
struct head_plan {
  bool in_shared;        ///< J in shared memory
  std::size_t shared;    ///< bytes of dynamic shared memory
  unsigned blocks;       ///< heads at work at a time
};

inline head_plan plan_heads(scan_shape const& s, int device) {
  std::size_t const vectors = (32 + static_cast<std::size_t>(head_memory::vectors(static_cast<int>(s.keys)))) * sizeof(float);
  std::size_t const matrix = static_cast<std::size_t>(s.keys * s.keys) * sizeof(float);
  auto const room = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  std::int64_t const heads = s.sequences * s.value_heads;
  bool const fits = vectors + matrix <= room;
  // Four blocks a multiprocessor hide each other's barriers; more would only cost workspace.
  std::int64_t const most = fits ? 0x7fffffff : 4 * static_cast<std::int64_t>(attribute(cudaDevAttrMultiProcessorCount, device));
  return {fits, fits ? vectors + matrix : vectors, static_cast<unsigned>(heads < most ? heads : most)};
}

}  // namespace detail

inline namespace PALIMPSA_CUDA_ABI {

/// The head stage, then the rows.
struct generic_heads {
  /// Takes x, and J where shared memory is too small for it, from an arena.
  template <class Storage>
  static head_problem<Storage> lay_out(sequential const& how, row_problem<Storage> const& problem, detail::head_plan const& plan,
                                       arena& memory) {
    scan_shape const& s = problem.shape;
    head_problem<Storage> p;
    p.rows = problem;
    p.solved = {memory.take<float>(s.batch * s.tokens * s.value_heads * s.keys), {s.batch, s.tokens, s.value_heads, s.keys}};
    if (!plan.in_shared) p.matrices = memory.take<float>(static_cast<std::int64_t>(plan.blocks) * s.keys * s.keys);
    p.most_iterations = how.solve_iterations > 0 ? how.solve_iterations : static_cast<int>(4 * s.keys);
    p.tolerance = how.solve_tolerance;
    return p;
  }

  /// Device memory for what lay_out takes.
  template <class Rule, class Storage>
  static std::size_t workspace_bytes(sequential const& how, row_problem<Storage> const& problem, int device) {
    arena count;
    lay_out(how, problem, detail::plan_heads(problem.shape, device), count);
    return palimpsa::detail::padded(count.used());
  }

  /// Launches on the stream of `how`.
  template <class Rule, class Storage>
  static void run(sequential const& how, row_problem<Storage> const& problem, workspace scratch, int device) {
    detail::head_plan const plan = detail::plan_heads(problem.shape, device);
    if (plan.blocks == 0 || (problem.pooled && problem.shape.tokens == 0)) return;
    arena memory(palimpsa::detail::aligned_workspace(scratch, workspace_bytes<Rule>(how, problem, device)));
    head_problem<Storage> const heads = lay_out(how, problem, plan, memory);
    auto* const kernel = &head_kernel<Rule, Storage>;
    if (plan.shared > 48 * 1024)
      detail::expect(cudaFuncSetAttribute(reinterpret_cast<void const*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(plan.shared)),
             "cudaFuncSetAttribute");
    launch(kernel, plan.blocks, static_cast<unsigned>(head_threads(problem.shape.keys)), plan.shared, device, how.stream, heads);
    row_problem<Storage> rows = problem;
    rows.solved = heads.solved;
    launch_rows<Rule>(how, rows, device);
  }
};

/// A full memory: one precision matrix a head.
template <>
struct implementation<sequential, transition::scalar, read_kind::solve> : generic_heads {};

}  // namespace PALIMPSA_CUDA_ABI
}  // namespace palimpsa::cuda
