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
    return per_channel(in.beta) ? "no chunked form: beta per channel gives every row a transition of its own" : nullptr;
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

/// Makes the runner of a scan in chunks; the workspace grows with the longest chunk there is.
template <class Rule, class Storage, class Scalar>
auto chunked_maker(chunked how, scan_shape const& s) {
  std::int64_t const chunk = (std::clamp<std::int64_t>)(s.tokens, 1, how.chunk);
  return [=](arena& memory) { return cpu::chunked_runner<Rule, Storage, Scalar>(memory, chunk, s.keys, s.values); };
}

}  // namespace detail

/// Bytes of workspace that `scan<Rule>(chunked, in, ...)` needs.
/// @throws argument_error     as scan does for the shapes of `in` and the chunk
/// @throws unsupported_error  if these inputs have no chunked form
template <any_rule Rule, stored Storage, class Scalar>
std::size_t scan_workspace(chunked how, scan_inputs<Storage, Scalar> const& in) {
  scan_shape const s = check_shapes<Rule>(in);
  detail::require_chunked<Rule>(how, in);
  return detail::plan_scan<Rule>(s, how.threads, detail::chunked_maker<Rule, Storage, Scalar>(how, s)).bytes();
}

/// Runs the recurrence over whole sequences in chunks of how.chunk tokens, by matrix products. The chunk changes nothing but
/// rounding; a sequence's chunks start at its first token. Reads, writes, threads and errors as scan(sequential, ...).
/// @param scratch  at least scan_workspace<Rule>(how, in) bytes; its contents do not matter
/// @throws argument_error     naming tensor, expected and given; nothing has been written then
/// @throws unsupported_error  DeltaNets with beta per channel; nothing has been written then
template <any_rule Rule, stored Storage, class Scalar>
void scan(chunked how, scan_inputs<Storage, Scalar> const& in, scan_outputs<Storage, Scalar> const& out, workspace scratch) {
  scan_shape const s = check_shapes<Rule>(in);
  detail::require_chunked<Rule>(how, in);
  detail::scan_heads<Rule>(how.threads, in, out, scratch, detail::chunked_maker<Rule, Storage, Scalar>(how, s));
}

}  // namespace palimpsa
