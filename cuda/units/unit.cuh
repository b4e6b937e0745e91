#pragma once
// What a unit contains: one rule, one storage type. CMake writes the units: PALIMPSA_GPU_UNIT(palimpsa, head, likelihood, float32).

#include "palimpsa/cuda/scan.cuh"
#include "units/gpu_calls.hpp"

namespace palimpsa_units {

/// Keyed like the library's own launching code: units for other GPUs may be in the same program.
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

/// The words of a unit's name, as types.
namespace words {

using mamba2 = ::palimpsa::Mamba2;
using longhorn = ::palimpsa::Longhorn;
using delta = ::palimpsa::GatedDeltaNet;
using implicit_delta = ::palimpsa::ImplicitGatedDeltaNet;
using palimpsa = ::palimpsa::Palimpsa;
using diagonal_kalman = ::palimpsa::DiagonalKalman;
using mesa_net = ::palimpsa::MesaNet;

using none = ::palimpsa::forget::none;
using constant = ::palimpsa::forget::constant;
using head = ::palimpsa::forget::per_head;
using key = ::palimpsa::forget::per_key;

using likelihood = ::palimpsa::weighting::likelihood;
using preweighted = ::palimpsa::weighting::preweighted;

using float32 = float;
using bfloat16 = __nv_bfloat16;
using float16 = __half;

}  // namespace words

/// Registers a rule for a type.
template <class Rule, class Storage>
bool enlist() {
  return registry<Storage>().emplace(name_of<Rule>(), gpu_row<Rule, Storage>::all()).second;
}

}  // namespace palimpsa_units

#define PALIMPSA_GPU_UNIT(write, forget, weighting, storage)                                                                    \
  [[maybe_unused]] static bool const enlisted =                                                                                 \
      palimpsa_units::enlist<palimpsa::with_weighting<palimpsa::with_forget<palimpsa_units::words::write,                        \
                                                                            palimpsa_units::words::forget>,                      \
                                                      palimpsa_units::words::weighting>,                                         \
                             palimpsa_units::words::storage>();
