#pragma once
/// @file
/// The public entry points on the CPU: scan (a sequence), and the size of its scratch. step.hpp has the one-token form,
/// scan_backward.hpp the gradients.

#include <cstddef>

#include "palimpsa/arguments.hpp"
#include "palimpsa/cpu/parallel.hpp"
#include "palimpsa/cpu/sequential.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/execution.hpp"
#include "palimpsa/validate_values.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// Bytes of workspace that `scan<Rule>(sequential, in, ...)` needs.
/// @throws argument_error  as scan does for the shapes of `in`
template <any_rule Rule, class Storage, class Scalar>
std::size_t scan_workspace(sequential how, scan_inputs<Storage, Scalar> const& in) {
  scan_shape const s = check_shapes<Rule>(in);
  arena count;
  cpu::sequential_runner<Rule, Storage, Scalar>(count, s.keys, s.values);
  auto const threads = static_cast<std::size_t>(cpu::thread_count(s.sequences * s.value_heads, how.threads));
  return detail::padded(count.used() * threads);
}

/// Runs the recurrence over whole sequences, token by token (the reference path; every rule has it).
///
/// Reads `in`, writes `out`; see arguments.hpp for shapes and units. float and double calculate in their own type, 16-bit storage in
/// float. Heads and sequences run in parallel where OpenMP is on; results do not depend on the number of threads.
/// @param scratch  at least scan_workspace<Rule>(how, in) bytes; its contents do not matter
/// @throws argument_error  naming tensor, expected and given; nothing has been written then
template <any_rule Rule, class Storage, class Scalar>
void scan(sequential how, scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& out,
          workspace scratch) {
  scan_shape const s = check_shapes<Rule>(in);
  check_shapes<Rule>(out, s);
  check_values<Rule>(in, s);
  std::size_t const needed = scan_workspace<Rule>(how, in);
  std::byte* const base = detail::aligned_workspace(scratch, needed);

  std::int64_t const tasks = s.sequences * s.value_heads;
  int const threads = cpu::thread_count(tasks, how.threads);
  std::size_t const share = (needed - (needed == 0 ? 0 : arena::alignment)) / static_cast<std::size_t>(threads);
  cpu::parallel_for(tasks, threads, [&](std::int64_t task, int thread) {
    std::int64_t const n = task / s.value_heads, head = task % s.value_heads;
    arena memory(base + share * static_cast<std::size_t>(thread));
    cpu::sequential_runner<Rule, Storage, Scalar> runner(memory, s.keys, s.values);
    segment const where = segment_of(s, in.cu_seqlens, n);
    runner.run(cpu::head_of<Rule>(in, s, n, head),
               {cpu::tokens_of(out.out, where, head), cpu::tokens_of(out.out_variance, where, head)},
               cpu::final_state<Scalar>{where.length, cpu::state_of(out.final_eta, n, head),
                                        cpu::state_of(out.final_evidence, n, head)});
  });
}

/// The same, allocating its workspace inside the call.
template <any_rule Rule, class Exec, class Storage, class Scalar>
void scan(Exec how, scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& out, allocate_t) {
  scan<Rule>(how, in, out, detail::owned_workspace(scan_workspace<Rule>(how, in)));
}

}  // namespace palimpsa
