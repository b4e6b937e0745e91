#pragma once
/// @file
/// The gradients of a scan on the CPU: scan_backward, and the size of its scratch.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "palimpsa/arguments.hpp"
#include "palimpsa/cpu/backward.hpp"
#include "palimpsa/cpu/team.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/execution.hpp"
#include "palimpsa/validate_values.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI {
namespace detail {

/// How the workspace of a backward pass is laid out: sums of every head of every sequence, then the scratch of each thread.
struct backward_plan {
  cpu::backward_sizes sizes;   ///< of one thread's scratch
  cpu::team_plan team;         ///< the key heads of all sequences
  std::int64_t priors;         ///< numbers a head has in its prior gradient: 0, 1 or K
  std::int64_t constants;      ///< numbers a head has in its gate gradient: 1 if the gate is constant
  std::int64_t sums;           ///< doubles that outlive a task
};

/// Tokens of the longest sequence.
inline std::int64_t longest_sequence(scan_shape const& s, index_view const& cu_seqlens) {
  std::int64_t most = 0;
  for (std::int64_t n = 0; n < s.sequences; ++n) most = (std::max)(most, segment_of(s, cu_seqlens, n).length);
  return most;
}

template <class Rule, class Storage, class Scalar>
backward_plan plan_backward(checkpointed how, scan_inputs<Storage, Scalar> const& in, scan_shape const& s) {
  if (how.chunk < 1) throw argument_error("chunk", "at least 1 token", std::to_string(how.chunk));
  check_boundaries(in.cu_seqlens, s.tokens);
  std::int64_t const tokens = longest_sequence(s, in.cu_seqlens), chunk = (std::clamp<std::int64_t>)(tokens, 1, how.chunk);
  cpu::backward_sizes const sizes{s.keys, s.values, s.group(), tokens / chunk + (tokens % chunk == 0 ? 0 : 1), chunk};
  // Kept states, and those of one chunk: the products that the runner takes memory for do not wrap.
  if (checked::product(sizes.group, sizes.chunks, max_channels * max_channels) > checked::most ||
      checked::product(chunk, max_channels * max_channels) > checked::most)
    throw argument_error("workspace", "a call that needs at most 2^56 bytes", "sizes that need more");
  std::int64_t const priors = Rule::keeps_full ? s.keys : Rule::keeps_diagonal ? 1 : 0;
  std::int64_t const constants = Rule::forget_type::scope == gate_scope::constant ? 1 : 0;
  std::int64_t const sum_count = s.sequences * s.value_heads * (priors + constants);
  // Forward again, and backward, some four forwards.
  cpu::team_plan team(s.sequences * s.key_heads, 4 * cpu::cell_steps<Rule>(s), how.threads,
                      [&](arena& count) { cpu::backward_runner<Rule, Storage, Scalar>(count, sizes); });
  arena sums;
  sums.take<double>(sum_count);
  team.shared = sums.used();
  return {sizes, team, priors, constants, sum_count};
}

/// One call of scan_backward, cut into heads.
template <class Rule, class Storage, class Scalar>
struct backward_call {
  scan_inputs<Storage, Scalar> const& in;
  scan_cotangents<Storage, Scalar> const& up;
  scan_gradients<Storage, Scalar> const& down;
  scan_shape const& shape;
  backward_plan const& plan;
  double* sums;  // [N, HV, priors + constants]

  double* sums_of(std::int64_t n, std::int64_t head) const {
    return sums + (n * shape.value_heads + head) * (plan.priors + plan.constants);
  }

  cpu::head_backward<Storage, Scalar> head_of(std::int64_t n, std::int64_t head) const {
    segment const where = segment_of(shape, in.cu_seqlens, n);
    cpu::head_backward<Storage, Scalar> h;
    h.in = cpu::head_of<Rule>(in, shape, n, head);
    h.out = cpu::tokens_of(up.grad_out, where, head);
    h.out_variance = cpu::tokens_of(up.grad_out_variance, where, head);
    h.final_eta = cpu::state_of(up.grad_final_eta, n, head);
    h.final_evidence = cpu::state_of(up.grad_final_evidence, n, head);
    h.v = cpu::tokens_of(down.grad_v, where, head);
    h.beta = cpu::tokens_of(down.grad_beta, where, head);
    h.beta_per_channel = !Rule::keeps_full && down.grad_beta.rank > 3;
    if constexpr (Rule::forget_type::scope != gate_scope::constant)
      h.log_decay = cpu::tokens_of(down.grad_log_decay, where, head);
    h.initial_eta = cpu::state_of(down.grad_initial_eta, n, head);
    h.initial_evidence = cpu::state_of(down.grad_initial_evidence, n, head);
    h.prior = sums_of(n, head);
    h.constant_gate = sums_of(n, head) + plan.priors;
    return h;
  }

  /// What is one number for all sequences: dprior, and dlog_decay of a constant gate.
  void leave_sums() const {
    std::int64_t const columns = down.grad_prior.rank > 1 ? shape.keys : 1, folded = plan.priors / columns;
    for (std::int64_t head = 0; head < shape.value_heads; ++head) {
      for (std::int64_t j = 0; down.grad_prior.present() && j < columns; ++j)
        *(down.grad_prior.rank > 1 ? down.grad_prior.at(head, j) : down.grad_prior.at(head)) =
            total(head, j * folded, folded);
      if (Rule::forget_type::scope == gate_scope::constant && down.grad_log_decay.present())
        down.grad_log_decay(head) = total(head, plan.priors, 1);
    }
  }

  /// Numbers [first, first + count) of a head, over all sequences.
  Scalar total(std::int64_t head, std::int64_t first, std::int64_t count) const {
    double sum = 0;
    for (std::int64_t n = 0; n < shape.sequences; ++n)
      for (std::int64_t i = first; i < first + count; ++i) sum += sums_of(n, head)[i];
    return static_cast<Scalar>(sum);
  }
};

/// What the compiler says of an unknown execution tag.
template <class Exec>
struct no_backward_by {
  static_assert(runs_backward<Exec>,
                "palimpsa::scan_backward: the first argument must be an execution tag: palimpsa::checkpointed (scan_backward.hpp)");
};

}  // namespace detail

/// Bytes of workspace that `scan_backward<Rule>(how, in, ...)` needs: for each thread the states at chunk starts of one key head's
/// value heads, (T/chunk)·V·K of them for the longest sequence (and K² or V·K of evidence), and the states of one chunk of a few rows.
/// @throws argument_error  as scan_backward does for the shapes of `in`, its cu_seqlens and the chunk
template <any_rule Rule, stored Storage, class Scalar>
std::size_t scan_backward_workspace(checkpointed how, scan_inputs<Storage, Scalar> const& in) {
  return detail::plan_backward<Rule>(how, in, check_shapes<Rule>(in)).team.bytes();
}

/// The gradients of a scan: from the derivatives of a loss with respect to what scan<Rule>(..., in, ...) wrote, those with respect to
/// what it read (every rule, a user's own policies too, through their slopes).
///
/// Every tensor present in `down` is written in full; an absent tensor of `up` is zero. q, k, v are accumulated in Scalar and rounded
/// to Storage once. An empty sequence hands grad_final_* to grad_initial_*. Gradients of log_decay are exact for every gate in
/// [-inf, 0] and zero at -inf. The evidence of a full memory is symmetric, and so is its gradient: of K² independent entries,
/// symmetrised. Sequences and key heads run in parallel where OpenMP is on; results depend neither on the number of threads nor, but
/// for rounding, on the chunk.
/// @param how      tokens between kept states; less = more memory, fewer cache misses
/// @param in       what the scan read; not needed: what it wrote
/// @param up       ∂loss/∂ what the scan wrote
/// @param down     where ∂loss/∂ what it read goes; must not overlap `in`; grad_initial_* may be the memory of grad_final_*
/// @param scratch  at least scan_backward_workspace<Rule>(how, in) bytes; its contents do not matter
/// @throws argument_error  naming tensor, expected and given; nothing has been written then
template <any_rule Rule, stored Storage, class Scalar>
void scan_backward(checkpointed how, scan_inputs<Storage, Scalar> const& in, scan_cotangents<Storage, Scalar> const& up,
                   scan_gradients<Storage, Scalar> const& down, workspace scratch) {
  scan_shape const s = check_shapes<Rule>(in);
  check_shapes<Rule>(in, up, down, s);
  check_values<Rule>(in, s);
  detail::backward_plan const plan = detail::plan_backward<Rule>(how, in, s);
  std::byte* const base = detail::aligned_workspace(scratch, plan.team.bytes());

  double* const sums = arena(base).take<double>(plan.sums);
  std::fill_n(sums, plan.sums, 0.0);
  detail::backward_call<Rule, Storage, Scalar> const call{in, up, down, s, plan, sums};
  plan.team.run(base, [&](std::int64_t task, arena& memory) {
    std::int64_t const n = task / s.key_heads, key_head = task % s.key_heads;
    segment const where = segment_of(s, in.cu_seqlens, n);
    cpu::backward_runner<Rule, Storage, Scalar> runner(memory, plan.sizes);
    runner.run([&](std::int64_t g) { return call.head_of(n, key_head * s.group() + g); },
               cpu::tokens_of(down.grad_q, where, key_head), cpu::tokens_of(down.grad_k, where, key_head));
  });
  call.leave_sums();
}

/// The same, allocating its workspace inside the call.
template <any_rule Rule, stored Storage, class Scalar>
void scan_backward(checkpointed how, scan_inputs<Storage, Scalar> const& in, scan_cotangents<Storage, Scalar> const& up,
                   scan_gradients<Storage, Scalar> const& down, allocate_t) {
  scan_backward<Rule>(how, in, up, down, detail::owned_workspace(scan_backward_workspace<Rule>(how, in)));
}

/// For any other tag: a sentence.
template <any_rule Rule, class Exec, class... Rest>
  requires(!runs_backward<Exec>)
void scan_backward(Exec const&, Rest const&...) {
  static_cast<void>(detail::no_backward_by<Exec>{});
}

}  // namespace palimpsa
