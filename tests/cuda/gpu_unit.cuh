#pragma once
// What a unit that nvcc compiles contains: one rule, one storage type. CMake writes the units: PALIMPSA_TEST_GPU_UNIT(palimpsa, head,
// false, float).

#include "palimpsa/cuda/scan.cuh"
#include "cuda/gpu_rules.hpp"
#include "cuda/rule_types.hpp"

namespace palimpsa_test {

using float32 = float;
using bfloat16 = __nv_bfloat16;
using float16 = __half;

/// Keyed like the library's own launching code: units for other GPUs may be in the same program (foreign/foreign.cu).
inline namespace PALIMPSA_CUDA_ABI {

template <class Rule, class Storage>
struct gpu_row {
  using calls = gpu_calls<Storage>;
  static std::size_t scan_workspace(gpu const& how, typename calls::inputs const& in) {
    return palimpsa::scan_workspace<Rule>(how, in);
  }
  static void scan(gpu const& how, typename calls::inputs const& in, typename calls::outputs const& out, palimpsa::workspace scratch) {
    palimpsa::scan<Rule>(how, in, out, scratch);
  }
  static void scan_allocating(gpu const& how, typename calls::inputs const& in, typename calls::outputs const& out) {
    palimpsa::scan<Rule>(how, in, out, palimpsa::allocate);
  }
  static std::size_t step_workspace(gpu const& how, typename calls::arguments const& a) {
    return palimpsa::step_workspace<Rule>(how, a);
  }
  static void step(gpu const& how, typename calls::arguments const& a, palimpsa::workspace scratch) {
    palimpsa::step<Rule>(how, a, scratch);
  }
  static void step_allocating(gpu const& how, typename calls::arguments const& a) { palimpsa::step<Rule>(how, a, palimpsa::allocate); }

  static calls all() { return {scan_workspace, scan, scan_allocating, step_workspace, step, step_allocating}; }
};

}  // namespace PALIMPSA_CUDA_ABI

}  // namespace palimpsa_test

/// Registers a rule.
#define PALIMPSA_TEST_GPU_UNIT(write, forget, preweighted, storage)                                                            \
  [[maybe_unused]] static bool const registered =                                                                                               \
      palimpsa_test::gpu_registry<palimpsa_test::storage>()                                                                    \
          .emplace(palimpsa_test::key_of({palimpsa_test::kind::write, palimpsa_test::gates::forget, preweighted}),             \
                   palimpsa_test::gpu_row<palimpsa_test::rule_type<palimpsa_test::kind::write, palimpsa_test::gates::forget,   \
                                                                   preweighted>,                                               \
                                          palimpsa_test::storage>::all())                                                      \
          .second;
