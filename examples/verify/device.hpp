#pragma once
// The GPU, as palimpsa-verify sees it: there, or the reason why not. Nothing here ever runs on the host instead.

#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/verify.hpp"

namespace verify {

/// Returns if there is a GPU that this program has code for. @throws std::runtime_error with the reason if not
void require_gpu();

/// Runs the rule of a case on the GPU. Precondition: require_gpu() returned.
palimpsa::io::case_runner rule_on_gpu(palimpsa::io::case_file const& given);

}  // namespace verify
