#pragma once
// The kernels that were compiled for the tests (cuda/units), by the names of rules that the tests draw.

#include <cstdlib>
#include <string>
#include <vector>

#include "support/problem.hpp"
#include "units/gpu_calls.hpp"

namespace palimpsa_test {

using palimpsa_units::gpu;
using palimpsa_units::gpu_calls;

/// A rule as the units name it.
inline std::string unit_of(rule_name r) {
  char const* const writes[] = {"mamba2", "longhorn", "delta", "implicit_delta", "palimpsa", "diagonal_kalman", "mesa_net"};
  char const* const forgets[] = {"none", "constant", "head", "key"};
  return std::string(writes[static_cast<int>(r.write)]) + "_" + forgets[static_cast<int>(r.forget)] +
         (r.preweighted ? "_preweighted" : "_likelihood");
}

/// Whether a rule was compiled for a storage type.
template <class Storage>
bool has_gpu(rule_name r) {
  return palimpsa_units::find<Storage>(unit_of(r)) != nullptr;
}

/// Whether the run is under a tool that makes it a hundred times slower: a rule of each kernel is enough then.
inline bool few_rules() { return std::getenv("PALIMPSA_TEST_FEW") != nullptr; }

/// Whether it is the one of its kernel.
template <class Storage>
bool one_of_few(rule_name r) {
  bool const typical = r.forget == gates::head && !r.preweighted &&
                       (r.write == kind::palimpsa || (sizeof(Storage) == 4 && (r.write == kind::delta || r.keeps_full())));
  return typical || (sizeof(Storage) == 4 && r.write == kind::mamba2 && r.forget == gates::key && !r.preweighted);
}

/// The rules that were compiled for a storage type; with PALIMPSA_TEST_FEW in the environment one for each kernel.
template <class Storage>
std::vector<rule_name> gpu_rules() {
  std::vector<rule_name> rules;
  for (kind write : every_kind)
    for (gates forget : {gates::none, gates::constant, gates::head, gates::key})
      for (bool preweighted : {false, true})
        if (rule_name const rule{write, forget, preweighted}; has_gpu<Storage>(rule) && (!few_rules() || one_of_few<Storage>(rule)))
          rules.push_back(rule);
  return rules;
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
  return palimpsa_units::registry<Storage>().at(unit_of(r));
}

}  // namespace palimpsa_test
