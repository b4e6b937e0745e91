#pragma once
/// @file
/// One call that checks a kernel in a test of your own: what it read, and what it wrote, as views of host memory; no file.
///
///     auto const report = palimpsa::io::check_kernel<palimpsa::Palimpsa>(in, out);
///     if (!passed(report)) std::cerr << text_of(report);
///
/// The right values are the rule's in float64, token by token, from the inputs as they are. A tensor's bound is that of float32
/// arithmetic (float64 for double) with its storage type, as for a file (verification.hpp).

#include "palimpsa/arguments.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/execution.hpp"
#include "palimpsa/io/case_call.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/case_of.hpp"
#include "palimpsa/io/report.hpp"
#include "palimpsa/io/rule_facts.hpp"
#include "palimpsa/io/verification.hpp"
#include "palimpsa/scan.hpp"
#include "palimpsa/scan_backward.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// The right values of a case: float64, token by token, on the CPU. `how` is not read.
/// @throws argument_error for a case that breaks the contract, naming tensor, expected and given
template <any_rule Rule> named_tensors reference_values(case_file const& given, run_options const& = {}) {
  case_inputs<double> inputs(given);
  auto const in = inputs.arguments();
  scan_shape const s = check_shapes<Rule>(in);
  check_values<Rule>(in, s);
  auto outputs = outputs_for<Rule, double>(given, s);
  scan<Rule>(sequential{1}, in, outputs.arguments(), allocate);
  named_tensors results;
  outputs.add_to(results);
  if (has_cotangents(given)) {
    case_gradients<double> gradients(given, Rule::keeps_precision);
    scan_backward<Rule>(checkpointed{64, 1}, in, inputs.cotangents(), gradients.arguments(), allocate);
    gradients.add_to(results);
  }
  return results;
}

/// Holds a case's values against the rule in float64: one that case_of made, or that was read from a file.
/// @param tolerance relative error to hold everything to in place of the bounds; 0 = the bounds
template <any_rule Rule> case_report check_case(case_file const& given, double tolerance = 0) {
  run_options how;
  how.tolerance = tolerance;
  return verify_case(given, facts_of<Rule>(), reference_values<Rule>, reference_values<Rule>, how);
}

/// Holds what a kernel wrote, forward, against the rule in float64. Views of host memory, any strides.
/// @throws argument_error for inputs that break the contract; a wrong shape of what was written fails its row alone
template <any_rule Rule, class Storage, class Scalar>
case_report check_kernel(scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& yours, double tolerance = 0) {
  return check_case<Rule>(case_of<Rule>(in, yours), tolerance);
}

/// The same with a backward pass: the cotangents it was given, and the gradients it wrote.
template <any_rule Rule, class Storage, class Scalar>
case_report check_kernel(scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& yours,
                         scan_cotangents<Storage, Scalar> const& cotangents, scan_gradients<Storage, Scalar> const& gradients,
                         double tolerance = 0) {
  return check_case<Rule>(case_of<Rule>(in, yours, cotangents, gradients), tolerance);
}

}  // namespace palimpsa::io
