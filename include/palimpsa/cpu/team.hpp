#pragma once
/// @file
/// How a call's tasks share threads and scratch: some bytes for all, then one part a thread. Its size depends on the call alone.

#include <cstddef>
#include <cstdint>
#include <string>

#include "palimpsa/cpu/parallel.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/detail/size.hpp"
#include "palimpsa/error.hpp"
#include "palimpsa/rule.hpp"
#include "palimpsa/shape.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI::cpu {

/// The work of a call in cell-steps; a solve takes about K³/6 products a token.
template <any_rule Rule>
double cell_steps(scan_shape const& s) {
  auto const of = [](std::int64_t n) { return static_cast<double>(n); };
  double const cells = of(s.values) * of(s.keys) + (Rule::keeps_full ? of(s.keys) * of(s.keys) * (1 + of(s.keys) / 6) : 0);
  return of(s.batch) * of(s.tokens) * of(s.value_heads) * cells;
}

/// The plan of a call.
struct team_plan {
  std::int64_t tasks = 0;  ///< independent ones
  int limit = 0;           ///< threads the caller named, or 0
  int parts = 1;           ///< parts of scratch, and so the most threads
  std::size_t shared = 0;  ///< bytes for all, before the parts
  std::size_t part = 0;    ///< bytes of one

  /// Tasks of `work` cell-steps in all. `lay_out(arena&)` takes what one thread needs.
  /// @throws argument_error  if `threads` is below 0
  template <class LayOut>
  team_plan(std::int64_t count, double work, int threads, LayOut lay_out) : tasks(count), limit(threads) {
    if (threads < 0) throw argument_error("threads", "a number above 0, or 0 for as many as pay", std::to_string(threads));
    parts = thread_limit(tasks, work, limit);
    arena counting;
    lay_out(counting);
    part = counting.used();
  }

  /// Bytes of workspace, from any address.
  /// @throws argument_error  if no memory is that large
  std::size_t bytes() const {
    arena all;
    all.take<std::byte>(static_cast<std::int64_t>(shared));
    all.take<std::byte>(checked::product(static_cast<std::int64_t>(part), parts));
    return palimpsa::detail::padded(all.used());
  }

  /// f(task, arena&) for every task, the arena over its thread's part of the scratch at `base`. f must not throw.
  template <class F>
  void run(std::byte* base, F f) const {
    parallel_for(tasks, thread_count(parts, limit), [&](std::int64_t task, int thread) {
      arena memory(base + shared + part * static_cast<std::size_t>(thread));
      f(task, memory);
    });
  }
};

}  // namespace palimpsa::cpu
