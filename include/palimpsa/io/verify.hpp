#pragma once
/// @file
/// Holds a rule, the library's or your own, against a case file: verification.hpp says how, run_case.hpp what is run. For the
/// values of a kernel that no file holds, check.hpp compiles in a third of the time.

#include <utility>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/report.hpp"
#include "palimpsa/io/rule_facts.hpp"
#include "palimpsa/io/run_case.hpp"
#include "palimpsa/io/verification.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// The case by a rule: what the library writes on the path and in the type of `how`, and what the file has, against right values.
/// @throws argument_error for a case that breaks the contract; a right value or cotangent of another shape fails alone
template <any_rule Rule> case_report verify_case(case_file const& given, run_options const& how = {}) {
  return verify_case(given, facts_of<Rule>(), run_case<Rule>, run_case<Rule>, how);
}

/// The case with the right values it lacks, in float64 by the sequential path.
template <any_rule Rule> case_file completed_case(case_file given) {
  return completed_case(std::move(given), run_case<Rule>);
}

}  // namespace palimpsa::io
