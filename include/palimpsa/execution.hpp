#pragma once
/// @file
/// Execution tags: which algorithm runs where. The one asked for runs, or the call is refused; there is no fallback.

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace palimpsa {

/// The recurrence, token by token, on the CPU. Every rule has this path; it is the reference.
struct sequential {
  int threads = 0;  ///< at most this many; 0 = as many as OpenMP gives and the work is worth. Results do not depend on it.
};

/// Chunks of tokens as matrix algebra on the CPU, for rules with a chunked form (see chunked_form).
struct chunked {
  std::int64_t chunk = 64;  ///< tokens a chunk, ≥ 1; changes nothing but rounding
  int threads = 0;          ///< as for sequential
};

/// The backward pass on the CPU: states are kept at chunk starts only and recomputed inside a chunk, so that memory grows with
/// T/chunk, never with T states. Every rule has it; it serves any forward path.
struct checkpointed {
  std::int64_t chunk = 64;  ///< tokens between kept states, ≥ 1; changes nothing but memory
  int threads = 0;          ///< as for sequential
};

/// Scratch memory that the caller owns. Sizes come from the *_workspace functions; contents need not be initialised.
using workspace = std::span<std::byte>;

/// Says "allocate the workspace inside this call"; no call allocates without it.
struct allocate_t {};
/// The value to pass in place of a workspace.
inline constexpr allocate_t allocate{};

/// The tags that scan takes; a tag of another header says so for itself.
template <class Exec>
inline constexpr bool runs_scan = std::is_same_v<Exec, sequential> || std::is_same_v<Exec, chunked>;
/// The tags that step takes.
template <class Exec>
inline constexpr bool runs_step = std::is_same_v<Exec, sequential>;
/// The tags that scan_backward takes.
template <class Exec>
inline constexpr bool runs_backward = std::is_same_v<Exec, checkpointed>;

}  // namespace palimpsa
