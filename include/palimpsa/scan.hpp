#pragma once
/// @file
/// The public entry points on the CPU: scan (a sequence), and the size of its scratch. step.hpp has the one-token form,
/// scan_backward.hpp the gradients.

#include <cstddef>
#include <cstdint>

#include "palimpsa/arguments.hpp"
#include "palimpsa/cpu/sequential.hpp"
#include "palimpsa/cpu/team.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/execution.hpp"
#include "palimpsa/validate_values.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

namespace detail {

/// What the compiler says of an unknown execution tag.
template <class Exec>
struct no_scan_by {
  static_assert(runs_scan<Exec>,
                "palimpsa::scan: the first argument must be an execution tag: palimpsa::sequential (scan.hpp), palimpsa::chunked "
                "(scan_chunked.hpp) or palimpsa::cuda::sequential (cuda/scan.cuh)");
};

/// The plan of a scan whose heads run in what make(arena&) makes.
template <class Rule, class Make>
cpu::team_plan plan_scan(scan_shape const& s, int threads, Make const& make) {
  return {s.sequences * s.value_heads, cpu::cell_steps<Rule>(s), threads, [&](arena& count) { make(count); }};
}

/// Checks a scan, and runs every head of every sequence.
template <class Rule, class Storage, class Scalar, class Make>
void scan_heads(int threads, scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& out, workspace scratch,
                Make make) {
  scan_shape const s = check_shapes<Rule>(in);
  check_shapes<Rule>(out, s);
  check_values<Rule>(in, s);
  cpu::team_plan const plan = plan_scan<Rule>(s, threads, make);
  plan.run(aligned_workspace(scratch, plan.bytes()), [&](std::int64_t task, arena& memory) {
    std::int64_t const n = task / s.value_heads, head = task % s.value_heads;
    segment const where = segment_of(s, in.cu_seqlens, n);
    auto runner = make(memory);
    runner.run(cpu::head_of<Rule>(in, s, n, head),
               {cpu::tokens_of(out.out, where, head), cpu::tokens_of(out.out_variance, where, head)},
               cpu::final_state<Scalar>{where.length, cpu::state_of(out.final_eta, n, head),
                                        cpu::state_of(out.final_evidence, n, head)});
  });
}

/// Makes the runner of a scan by the recurrence.
template <class Rule, class Storage, class Scalar>
auto sequential_maker(scan_shape const& s) {
  return [=](arena& memory) { return cpu::sequential_runner<Rule, Storage, Scalar>(memory, s.keys, s.values); };
}

}  // namespace detail

/// Bytes of workspace that `scan<Rule>(sequential, in, ...)` needs.
/// @throws argument_error  as scan does for the shapes of `in`
template <any_rule Rule, stored Storage, class Scalar>
std::size_t scan_workspace(sequential how, scan_inputs<Storage, Scalar> const& in) {
  scan_shape const s = check_shapes<Rule>(in);
  return detail::plan_scan<Rule>(s, how.threads, detail::sequential_maker<Rule, Storage, Scalar>(s)).bytes();
}

/// Runs the recurrence over whole sequences, token by token (the reference path; every rule has it).
///
/// Reads `in`, writes `out`; see arguments.hpp for shapes and units. float and double calculate in their own type, 16-bit storage in
/// float. Heads and sequences run in parallel where OpenMP is on; results do not depend on the number of threads.
/// @param scratch  at least scan_workspace<Rule>(how, in) bytes; its contents do not matter
/// @throws argument_error  naming tensor, expected and given; nothing has been written then
template <any_rule Rule, stored Storage, class Scalar>
void scan(sequential how, scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& out,
          workspace scratch) {
  scan_shape const s = check_shapes<Rule>(in);
  detail::scan_heads<Rule>(how.threads, in, out, scratch, detail::sequential_maker<Rule, Storage, Scalar>(s));
}

/// The same, allocating its workspace inside the call.
template <any_rule Rule, class Exec, stored Storage, class Scalar>
  requires(runs_scan<Exec>)
void scan(Exec how, scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& out, allocate_t) {
  scan<Rule>(how, in, out, detail::owned_workspace(scan_workspace<Rule>(how, in)));
}

/// For any other tag: a sentence.
template <any_rule Rule, class Exec, class... Rest>
  requires(!runs_scan<Exec>)
void scan(Exec const&, Rest const&...) {
  static_cast<void>(detail::no_scan_by<Exec>{});
}
/// The same.
template <any_rule Rule, class Exec, class... Rest>
  requires(!runs_scan<Exec>)
std::size_t scan_workspace(Exec const&, Rest const&...) {
  return sizeof(detail::no_scan_by<Exec>);
}

}  // namespace palimpsa
