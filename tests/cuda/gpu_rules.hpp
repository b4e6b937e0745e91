#pragma once
// The thin boundary between the tests (a host compiler, Catch2, Eigen) and the kernels (nvcc, neither of them): the public calls of
// one rule and storage type as a row of pointers. A unit that nvcc compiles registers its row before main; see gpu_unit.cuh.

#include <cstddef>
#include <cstdlib>
#include <map>
#include <tuple>
#include <vector>

#include "palimpsa/arguments.hpp"
#include "palimpsa/cuda/execution.cuh"
#include "palimpsa/cuda/machine/storage.cuh"
#include "palimpsa/execution.hpp"
#include "support/problem.hpp"

namespace palimpsa_test {

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

/// A rule as a key.
inline std::tuple<int, int, bool> key_of(rule_name r) { return {static_cast<int>(r.write), static_cast<int>(r.forget), r.preweighted}; }

/// What was compiled for a storage type.
template <class Storage>
std::map<std::tuple<int, int, bool>, gpu_calls<Storage>>& gpu_registry() {
  static std::map<std::tuple<int, int, bool>, gpu_calls<Storage>> registry;
  return registry;
}

/// Whether the run is under a tool that makes it a hundred times slower: a rule of each kernel is enough then.
inline bool few_rules() { return std::getenv("PALIMPSA_TEST_FEW") != nullptr; }

/// The rules that were compiled for a storage type; with PALIMPSA_TEST_FEW in the environment one for each kernel.
template <class Storage>
std::vector<rule_name> gpu_rules() {
  std::vector<rule_name> rules;
  for (auto const& [key, calls] : gpu_registry<Storage>()) {
    rule_name const rule{static_cast<kind>(std::get<0>(key)), static_cast<gates>(std::get<1>(key)), std::get<2>(key)};
    bool const typical = rule.forget == gates::head && !rule.preweighted &&
                         (rule.write == kind::palimpsa || (sizeof(Storage) == 4 && (rule.write == kind::delta || rule.keeps_full())));
    bool const per_key = sizeof(Storage) == 4 && rule.write == kind::mamba2 && rule.forget == gates::key && !rule.preweighted;
    if (!few_rules() || typical || per_key) rules.push_back(rule);
  }
  return rules;
}

/// Whether a rule was compiled for a storage type.
template <class Storage>
bool has_gpu(rule_name r) {
  return gpu_registry<Storage>().count(key_of(r)) != 0;
}

/// The compiled rules with one gate a head and values that are to be weighted: one of each write.
template <class Storage>
std::vector<rule_name> one_of_each_write() {
  std::vector<rule_name> rules;
  for (kind write : every_kind)
    if (rule_name const rule{write, gates::head, false}; has_gpu<Storage>(rule)) rules.push_back(rule);
  return rules;
}

/// The calls of a rule that was compiled.
template <class Storage>
gpu_calls<Storage> const& gpu_calls_of(rule_name r) {
  return gpu_registry<Storage>().at(key_of(r));
}

}  // namespace palimpsa_test
