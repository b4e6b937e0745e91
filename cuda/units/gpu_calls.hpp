#pragma once
// The thin boundary between host programs (any compiler, Eigen, JSON, Catch2) and kernels (nvcc, none of them): the public calls of one
// rule and storage type as a row of pointers. A unit that nvcc compiles registers its row before main (unit.cuh); palimpsa-verify and the
// tests on a GPU link the same units and look rows up by name.

#include <cstddef>
#include <map>
#include <string>
#include <type_traits>

#include "palimpsa/arguments.hpp"
#include "palimpsa/cuda/execution.cuh"
#include "palimpsa/cuda/machine/storage.cuh"
#include "palimpsa/execution.hpp"
#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/longhorn.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/rule.hpp"

namespace palimpsa_units {

using gpu = palimpsa::cuda::sequential;

/// The public calls of a rule.
template <class Storage>
struct gpu_calls {
  using inputs = palimpsa::scan_inputs<Storage>;
  using outputs = palimpsa::scan_outputs<Storage>;
  using arguments = palimpsa::step_arguments<Storage>;
  std::size_t (*scan_workspace)(gpu const&, inputs const&);
  void (*scan)(gpu const&, inputs const&, outputs const&, palimpsa::workspace);
  void (*scan_allocating)(gpu const&, inputs const&, outputs const&);
  std::size_t (*step_workspace)(gpu const&, arguments const&);
  void (*step)(gpu const&, arguments const&, palimpsa::workspace);
  void (*step_allocating)(gpu const&, arguments const&);
};

/// What was compiled for a storage type, by name.
template <class Storage>
std::map<std::string, gpu_calls<Storage>>& registry() {
  static std::map<std::string, gpu_calls<Storage>> rows;
  return rows;
}

/// The row of a rule, or null where it was not compiled.
template <class Storage>
gpu_calls<Storage> const* find(std::string const& name) {
  auto const row = registry<Storage>().find(name);
  return row == registry<Storage>().end() ? nullptr : &row->second;
}

/// The name of a rule: write_forget_weighting, as CMakeLists.txt lists units (less the type).
template <class Rule>
std::string name_of() {
  using namespace palimpsa;
  using write = with_weighting<with_forget<Rule, forget::per_head>, weighting::likelihood>;
  constexpr auto is = []<class Other>(std::type_identity<Other>) { return std::is_same_v<write, Other>; };
  std::string name = is(std::type_identity<Mamba2>{})                  ? "mamba2"
                     : is(std::type_identity<Longhorn>{})              ? "longhorn"
                     : is(std::type_identity<GatedDeltaNet>{})         ? "delta"
                     : is(std::type_identity<ImplicitGatedDeltaNet>{}) ? "implicit_delta"
                     : is(std::type_identity<Palimpsa>{})              ? "palimpsa"
                     : is(std::type_identity<DiagonalKalman>{})        ? "diagonal_kalman"
                     : is(std::type_identity<MesaNet>{})               ? "mesa_net"
                                                                       : "other";
  constexpr gate_scope scope = Rule::forget_type::scope;
  name += scope == gate_scope::none ? "_none" : scope == gate_scope::constant ? "_constant" : scope == gate_scope::head ? "_head" : "_key";
  return name + (std::is_same_v<typename Rule::weighting_type, weighting::likelihood> ? "_likelihood" : "_preweighted");
}

}  // namespace palimpsa_units
