#pragma once
/// @file
/// Runs a case on the CPU, by the path and in the type that was asked for: forward, and backward where the case has a
/// cotangent.

#include <cstdint>
#include <string>
#include <type_traits>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/error.hpp"
#include "palimpsa/execution.hpp"
#include "palimpsa/io/case_call.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/case_steps.hpp"
#include "palimpsa/io/run_options.hpp"
#include "palimpsa/io/tensor.hpp"
#include "palimpsa/scan.hpp"
#include "palimpsa/scan_backward.hpp"
#include "palimpsa/scan_chunked.hpp"
#include "palimpsa/step.hpp"
#include "palimpsa/storage_eigen.hpp"
#include "palimpsa/traits.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// What the verification of a rule has to know of it.
struct rule_facts {
  bool solves = false;      ///< a linear system a token (a full memory)
  bool triangular = false;  ///< its chunked form solves a unit-triangular system
  bool exact_gain = false;  ///< with the exact gain in it
};

/// The facts of a rule.
template <any_rule Rule>
constexpr rule_facts facts_of() {
  return {Rule::keeps_full, chunked_form<Rule> == chunk_form::wy, std::is_same_v<typename Rule::gain_type, gain::exact>};
}

/// Has the case the derivative of a loss with respect to anything the rule writes?
inline bool has_cotangents(case_file const& given) {
  return given.grad_out || given.grad_out_variance || given.grad_final_eta || given.grad_final_evidence;
}

namespace detail {

template <any_rule Rule, class Storage>
void run_chunked(palimpsa::chunked how, scan_inputs<Storage> const& in, scan_outputs<Storage> const& out) {
  if (char const* const reason = chunked_refusal<Rule>(in)) throw unsupported_error(reason);
  if constexpr (chunked_form<Rule> != chunk_form::none) scan<Rule>(how, in, out, allocate);
}

template <any_rule Rule, class Storage> named_tensors run_case_in(case_file const& given, run_options const& how) {
  case_inputs<Storage> inputs(given);
  auto const in = inputs.arguments();
  scan_shape const s = check_shapes<Rule>(in);
  check_values<Rule>(in, s);
  auto outputs = outputs_for<Rule, Storage>(given, s);
  switch (how.path) {
    case scan_path::sequential:
      scan<Rule>(sequential{}, in, outputs.arguments(), allocate);
      break;
    case scan_path::chunked:
      run_chunked<Rule>({how.chunk}, in, outputs.arguments());
      break;
    case scan_path::step:
      run_steps(in, s, outputs, [](step_arguments<Storage> const& a) {
        step<Rule>(sequential{}, a, allocate);
      });
      break;
  }
  named_tensors results;
  outputs.add_to(results);
  if (has_cotangents(given)) {
    case_gradients<Storage> gradients(given);
    scan_backward<Rule>(checkpointed{how.chunk}, in, inputs.cotangents(), gradients.arguments(), allocate);
    gradients.add_to(results);
  }
  return results;
}

}  // namespace detail

/// Runs a case by a rule: the right names with what the library wrote, as doubles. Values of the case are rounded to the
/// types of the call.
/// @throws argument_error for a case that breaks the contract, naming tensor, expected and given
/// @throws unsupported_error for a path that the rule, or the case's shapes, do not have
template <any_rule Rule> named_tensors run_case(case_file const& given, run_options const& how = {}) {
  switch (how.type) {
    case dtype::f64:
      return detail::run_case_in<Rule, double>(given, how);
    case dtype::f32:
      return detail::run_case_in<Rule, float>(given, how);
    case dtype::bf16:
      return detail::run_case_in<Rule, Eigen::bfloat16>(given, how);
    case dtype::f16:
      return detail::run_case_in<Rule, Eigen::half>(given, how);
    case dtype::i64:
    case dtype::i32:
      break;
  }
  throw argument_error("type", "F64, F32, BF16 or F16", std::string(name_of(how.type)));
}

}  // namespace palimpsa::io
