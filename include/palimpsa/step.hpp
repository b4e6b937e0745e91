#pragma once
/// @file
/// One token (or a few) for each row of a batch, states updated in place in a pool: the form an inference engine calls.

#include <atomic>
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

/// Where a step leaves the states of one head: after the last token, or after every token, by slot.
template <class Storage, class Scalar>
struct slot_states {
  step_arguments<Storage, Scalar> const& arguments;
  scan_shape const& shape;
  std::int64_t row, head;

  cpu::plane<Scalar> eta_after(std::int64_t t) const { return kept(arguments.eta, t); }
  cpu::plane<Scalar> evidence_after(std::int64_t t) const { return kept(arguments.evidence, t); }

 private:
  cpu::plane<Scalar> kept(view<Scalar> const& pool, std::int64_t t) const {
    std::int64_t const slot = slot_written(arguments, shape, row, t);
    return slot < 0 ? cpu::plane<Scalar>{} : cpu::state_of(pool, slot, head);
  }
};

/// Zeros for the outputs of an inert row.
template <class T>
void clear(cpu::plane<T> out, std::int64_t tokens, std::int64_t values) {
  if (!out.present()) return;
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t i = 0; i < values; ++i) out(t, i) = T(0);
}

/// The plan of a step: written slots for all, then what one head needs a thread.
template <class Rule, class Storage, class Scalar>
cpu::team_plan plan_step(sequential how, step_arguments<Storage, Scalar> const& a, scan_shape const& s) {
  cpu::team_plan plan(s.batch * s.value_heads, cpu::cell_steps<Rule>(s), how.threads, [&](arena& count) {
    cpu::sequential_runner<Rule, Storage, Scalar>(count, s.keys, s.values);
  });
  arena slots;
  slots.take<written_slot>(written_slots(a, s));
  plan.shared = slots.used();
  return plan;
}

/// Checks the evidence of every state that a step reads, by as many threads as the step has: in one, reading it alone could take as
/// long as the step. Which element is at fault is found by one thread, so that it is always the first.
template <class Rule, class Storage, class Scalar>
void check_pool(cpu::team_plan const& plan, step_arguments<Storage, Scalar> const& a, scan_shape const& s) {
  if constexpr (Rule::keeps_precision) {
    std::atomic<bool> wrong{false};
    cpu::parallel_for(s.batch, cpu::thread_count(plan.parts, plan.limit), [&](std::int64_t row, int) {
      try {
        check_slot<Rule>(a, s, row);
      } catch (argument_error const&) {
        wrong = true;
      }
    });
    for (std::int64_t row = 0; wrong && row < s.batch; ++row) check_slot<Rule>(a, s, row);
  }
}

/// What the compiler says of an unknown execution tag.
template <class Exec>
struct no_step_by {
  static_assert(runs_step<Exec>,
                "palimpsa::step: the first argument must be an execution tag: palimpsa::sequential (step.hpp) or "
                "palimpsa::cuda::sequential (cuda/scan.cuh)");
};

}  // namespace detail

/// Bytes of workspace that `step<Rule>(sequential, a, ...)` needs.
/// @throws argument_error  as step does for shapes
template <any_rule Rule, stored Storage, class Scalar>
std::size_t step_workspace(sequential how, step_arguments<Storage, Scalar> const& a) {
  return detail::plan_step<Rule>(how, a, check_shapes<Rule>(a)).bytes();
}

/// Takes n tokens (usually one) for each of B rows: reads each row's state from its slot, writes the reads to `out` and the state
/// to its slot. n single steps are one scan of n tokens, bit by bit; a step of no tokens writes nothing. A row whose slot_in is -1 is
/// inert: its output is zero and nothing of it is accessed.
/// @param scratch  at least step_workspace<Rule>(how, a) bytes; its contents do not matter
/// @throws argument_error  naming tensor, expected and given; nothing has been written then
template <any_rule Rule, stored Storage, class Scalar>
void step(sequential how, step_arguments<Storage, Scalar> const& a, workspace scratch) {
  scan_shape const s = check_shapes<Rule>(a);
  cpu::team_plan const plan = detail::plan_step<Rule>(how, a, s);
  std::byte* const base = detail::aligned_workspace(scratch, plan.bytes());
  check_values<Rule>(a, s, arena(base).take<written_slot>(written_slots(a, s)));
  if (s.tokens == 0) return;
  detail::check_pool<Rule>(plan, a, s);

  plan.run(base, [&](std::int64_t task, arena& memory) {
    std::int64_t const row = task / s.value_heads, head = task % s.value_heads, slot = slot_read(a, row);
    segment const where{row, 0, s.tokens};
    cpu::head_outputs<Storage, Scalar> const out{cpu::tokens_of(a.out, where, head),
                                                 cpu::tokens_of(a.out_variance, where, head)};
    if (slot < 0) {
      detail::clear(out.out, s.tokens, s.values);
      detail::clear(out.out_variance, s.tokens, s.values);
      return;
    }
    cpu::sequential_runner<Rule, Storage, Scalar> runner(memory, s.keys, s.values);
    runner.run(cpu::head_of<Rule, step_arguments<Storage, Scalar>, Scalar>(a, s, where, head,
                                                                          cpu::state_of(view<Scalar const>(a.eta), slot, head),
                                                                          cpu::state_of(view<Scalar const>(a.evidence), slot, head)),
               out, detail::slot_states<Storage, Scalar>{a, s, row, head});
  });
}

/// The same, allocating its workspace inside the call.
template <any_rule Rule, class Exec, stored Storage, class Scalar>
  requires(runs_step<Exec>)
void step(Exec how, step_arguments<Storage, Scalar> const& a, allocate_t) {
  step<Rule>(how, a, detail::owned_workspace(step_workspace<Rule>(how, a)));
}

/// For any other tag: a sentence.
template <any_rule Rule, class Exec, class... Rest>
  requires(!runs_step<Exec>)
void step(Exec const&, Rest const&...) {
  static_cast<void>(detail::no_step_by<Exec>{});
}

}  // namespace palimpsa
