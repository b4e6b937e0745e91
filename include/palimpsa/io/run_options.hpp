#pragma once
/// @file
/// How a case is run, on the CPU or elsewhere.

#include <cstdint>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/tensor.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// How the forward pass runs.
enum class scan_path {
  sequential,  ///< scan, token by token: every rule has it
  chunked,     ///< scan, a chunk of tokens at a time, for the rules and shapes that have a chunked form
  step         ///< one token a call, states in a pool
};

/// How a case is run.
struct run_options {
  dtype type = dtype::f64;                 ///< of q, k, v, out; arithmetic is in F64 for F64 and in F32 for F32, BF16, F16
  scan_path path = scan_path::sequential;  ///< forward; there is one backward pass, whatever the path
  std::int64_t chunk = 64;                 ///< tokens a chunk, and between the states that the backward pass keeps; >= 1
  double tolerance = 0;                    ///< relative error to hold everything to in place of the bounds; 0 = the bounds
};

}  // namespace palimpsa::io
