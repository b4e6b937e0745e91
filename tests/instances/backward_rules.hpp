#pragma once
// scan_backward of rules picked at run time, instantiated once, in backward_rules_*.cpp.

#include <cstddef>

#include "palimpsa/arguments.hpp"
#include "palimpsa/execution.hpp"
#include "support/rules.hpp"

namespace palimpsa_test {

/// palimpsa::scan_backward, and the size of its workspace.
template <class Storage>
void run_backward(rule_name rule, palimpsa::checkpointed how, palimpsa::scan_inputs<Storage> const& in,
                  palimpsa::scan_cotangents<Storage> const& up, palimpsa::scan_gradients<Storage> const& down,
                  palimpsa::workspace scratch);
template <class Storage>
std::size_t backward_workspace(rule_name rule, palimpsa::checkpointed how, palimpsa::scan_inputs<Storage> const& in);

/// Whether it is instantiated. In double: every write with every way to forget, and preweighted with a gate a head. In float: every
/// write with a gate a head, some with one a key. 16-bit storage: one write of each memory.
template <class Storage>
constexpr bool has_backward(rule_name r) {
  if (r.write == kind::mesa_net && r.forget == gates::key) return false;
  if (std::is_same_v<Storage, double>) return !r.preweighted || r.forget == gates::head;
  if (r.preweighted) return false;
  if (std::is_same_v<Storage, float>)
    return r.forget == gates::head ||
           (r.forget == gates::key && (r.write == kind::delta || r.write == kind::palimpsa || r.write == kind::diagonal_kalman));
  return r.forget == gates::head && (r.write == kind::delta || r.write == kind::palimpsa || r.write == kind::mesa_net);
}

/// All of them.
template <class Storage>
std::vector<rule_name> every_backward() {
  std::vector<rule_name> rules;
  for (gates forget : {gates::head, gates::key, gates::none, gates::constant})
    for (kind write : every_kind)
      for (bool preweighted : {false, true})
        if (rule_name const r{write, forget, preweighted}; has_backward<Storage>(r)) rules.push_back(r);
  return rules;
}

}  // namespace palimpsa_test
