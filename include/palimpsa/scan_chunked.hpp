#pragma once
/// @file
/// scan in chunks, for the rules that have a chunked form: tokens of a chunk as matrix products.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "palimpsa/cpu/chunked_runner.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/scan.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// Why these inputs have no chunked form under this rule, as a sentence; null if they have one.
template <any_rule Rule, class Storage, class Scalar>
char const* chunked_refusal(scan_inputs<Storage, Scalar> const& in) {
  if constexpr (chunked_form<Rule> == chunk_form::none)
    return "no chunked form: this rule's transition differs from cell to cell";
  else if constexpr (chunked_form<Rule> == chunk_form::wy)
    return in.beta.rank == 4 ? "no chunked form: beta per channel gives every row a transition of its own" : nullptr;
  else
    return nullptr;
}

namespace detail {

template <class Rule, class Storage, class Scalar>
void require_chunked(chunked how, scan_inputs<Storage, Scalar> const& in) {
  static_assert(chunked_form<Rule> != chunk_form::none,
                "palimpsa::scan: this rule has no chunked form (see palimpsa::chunked_form); use palimpsa::sequential");
  if (how.chunk < 1) throw argument_error("chunk", "at least 1 token", std::to_string(how.chunk));
  if (char const* const why = chunked_refusal<Rule>(in)) throw unsupported_error(why);
}

/// Tokens of the longest chunk there is: the workspace grows with it.
inline std::int64_t longest_chunk(chunked how, scan_shape const& s) {
  return (std::min)((std::max)(s.tokens, std::int64_t{1}), how.chunk);
}

}  // namespace detail

/// Bytes of workspace that `scan<Rule>(chunked, in, ...)` needs.
/// @throws argument_error     as scan does for the shapes of `in` and the chunk
/// @throws unsupported_error  if these inputs have no chunked form
template <any_rule Rule, class Storage, class Scalar>
std::size_t scan_workspace(chunked how, scan_inputs<Storage, Scalar> const& in) {
  scan_shape const s = check_shapes<Rule>(in);
  detail::require_chunked<Rule>(how, in);
  arena count;
  cpu::chunked_runner<Rule, Storage, Scalar>(count, detail::longest_chunk(how, s), s.keys, s.values);
  auto const threads = static_cast<std::size_t>(cpu::thread_count(s.sequences * s.value_heads, how.threads));
  return detail::padded(count.used() * threads);
}

/// Runs the recurrence over whole sequences in chunks of how.chunk tokens, by matrix products. The chunk changes nothing but
/// rounding; a sequence's chunks start at its first token. Reads, writes, threads and errors as scan(sequential, ...).
/// @param scratch  at least scan_workspace<Rule>(how, in) bytes; its contents do not matter
/// @throws argument_error     naming tensor, expected and given; nothing has been written then
/// @throws unsupported_error  DeltaNets with beta per channel; nothing has been written then
template <any_rule Rule, class Storage, class Scalar>
void scan(chunked how, scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& out, workspace scratch) {
  scan_shape const s = check_shapes<Rule>(in);
  check_shapes<Rule>(out, s);
  check_values<Rule>(in, s);
  std::size_t const needed = scan_workspace<Rule>(how, in);
  std::byte* const base = detail::aligned_workspace(scratch, needed);

  std::int64_t const tasks = s.sequences * s.value_heads, chunk = detail::longest_chunk(how, s);
  int const threads = cpu::thread_count(tasks, how.threads);
  std::size_t const share = (needed - (needed == 0 ? 0 : arena::alignment)) / static_cast<std::size_t>(threads);
  cpu::parallel_for(tasks, threads, [&](std::int64_t task, int thread) {
    std::int64_t const n = task / s.value_heads, head = task % s.value_heads;
    arena memory(base + share * static_cast<std::size_t>(thread));
    cpu::chunked_runner<Rule, Storage, Scalar> runner(memory, chunk, s.keys, s.values);
    segment const where = segment_of(s, in.cu_seqlens, n);
    runner.run(cpu::head_of<Rule>(in, s, n, head),
               {cpu::tokens_of(out.out, where, head), cpu::tokens_of(out.out_variance, where, head)},
               cpu::final_state<Scalar>{where.length, cpu::state_of(out.final_eta, n, head),
                                        cpu::state_of(out.final_evidence, n, head)});
  });
}

}  // namespace palimpsa
