#pragma once
/// @file
/// One token (or a few) for each row of a batch, states updated in place in a pool: the form an inference engine calls.

#include <cstddef>

#include "palimpsa/arguments.hpp"
#include "palimpsa/cpu/parallel.hpp"
#include "palimpsa/cpu/sequential.hpp"
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

/// The step's arguments of one row, as a scan sees them.
template <class Rule, class Storage, class Scalar>
cpu::head_inputs<Storage, Scalar> head_of(step_arguments<Storage, Scalar> const& a, scan_shape const& s, std::int64_t row,
                                          std::int64_t head) {
  segment const where{row, 0, s.tokens};
  std::int64_t const key_head = head / s.group(), slot = slot_read(a, row);
  cpu::head_inputs<Storage, Scalar> h;
  h.tokens = s.tokens;
  h.keys = s.keys;
  h.values = s.values;
  h.q = cpu::tokens_of(a.q, where, key_head);
  h.k = cpu::tokens_of(a.k, where, key_head);
  h.v = cpu::tokens_of(a.v, where, head);
  h.beta = cpu::tokens_of(a.beta, where, head);
  h.log_decay = cpu::gates_of<typename Rule::forget_type>(a.log_decay, where, head);
  h.prior = cpu::prior_of(a.prior, head);
  h.eta = cpu::state_of(view<Scalar const>(a.eta), slot, head);
  h.evidence = cpu::state_of(view<Scalar const>(a.evidence), slot, head);
  h.scale = static_cast<Scalar>(a.scale);
  return h;
}

/// Zeros for the outputs of an inert row.
template <class T>
void clear(cpu::plane<T> out, std::int64_t tokens, std::int64_t values) {
  if (!out.present()) return;
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t i = 0; i < values; ++i) out(t, i) = T(0);
}

}  // namespace detail

/// Bytes of workspace that `step<Rule>(sequential, a, ...)` needs.
/// @throws argument_error  as step does for shapes
template <any_rule Rule, class Storage, class Scalar>
std::size_t step_workspace(sequential how, step_arguments<Storage, Scalar> const& a) {
  scan_shape const s = check_shapes<Rule>(a);
  arena count;
  cpu::sequential_runner<Rule, Storage, Scalar>(count, s.keys, s.values);
  std::size_t const heads = count.used() * static_cast<std::size_t>(cpu::thread_count(s.batch * s.value_heads, how.threads));
  arena slots;
  slots.take<written_slot>(written_slots(a, s));
  return detail::padded(heads + slots.used());
}

/// Takes n tokens (usually one) for each of B rows: reads each row's state from its slot, writes the reads to `out` and the state
/// to its slot. n single steps are one scan of n tokens, bit by bit. A row whose slot_in is -1 is inert: its output is zero and
/// nothing of it is accessed.
/// @param scratch  at least step_workspace<Rule>(how, a) bytes; its contents do not matter
/// @throws argument_error  naming tensor, expected and given; nothing has been written then
template <any_rule Rule, class Storage, class Scalar>
void step(sequential how, step_arguments<Storage, Scalar> const& a, workspace scratch) {
  scan_shape const s = check_shapes<Rule>(a);
  std::byte* const base = detail::aligned_workspace(scratch, step_workspace<Rule>(how, a));
  arena front(base);
  check_values<Rule>(a, s, front.take<written_slot>(written_slots(a, s)));

  arena count;
  cpu::sequential_runner<Rule, Storage, Scalar>(count, s.keys, s.values);
  std::int64_t const tasks = s.batch * s.value_heads;
  cpu::parallel_for(tasks, cpu::thread_count(tasks, how.threads), [&](std::int64_t task, int thread) {
    std::int64_t const row = task / s.value_heads, head = task % s.value_heads;
    segment const where{row, 0, s.tokens};
    cpu::head_outputs<Storage, Scalar> const out{cpu::tokens_of(a.out, where, head),
                                                 cpu::tokens_of(a.out_variance, where, head)};
    if (slot_read(a, row) < 0) {
      detail::clear(out.out, s.tokens, s.values);
      detail::clear(out.out_variance, s.tokens, s.values);
      return;
    }
    arena memory(base + front.used() + count.used() * static_cast<std::size_t>(thread));
    cpu::sequential_runner<Rule, Storage, Scalar> runner(memory, s.keys, s.values);
    runner.run(detail::head_of<Rule>(a, s, row, head), out, detail::slot_states<Storage, Scalar>{a, s, row, head});
  });
}

/// The same, allocating its workspace inside the call.
template <any_rule Rule, class Exec, class Storage, class Scalar>
void step(Exec how, step_arguments<Storage, Scalar> const& a, allocate_t) {
  step<Rule>(how, a, detail::owned_workspace(step_workspace<Rule>(how, a)));
}

}  // namespace palimpsa
