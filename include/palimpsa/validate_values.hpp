#pragma once
/// @file
/// The part of the contract that only the contents of host tensors can break: boundaries, gates, precisions, slots.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/validate.hpp"

namespace palimpsa::inline PALIMPSA_ABI {
namespace detail {

inline void check_boundaries(index_view const& cu_seqlens, std::int64_t tokens) {
  if (!cu_seqlens.present()) return;
  std::int64_t const last = cu_seqlens.extent[0] - 1;
  if (cu_seqlens(0) != 0) throw argument_error("cu_seqlens[0]", "0", std::to_string(cu_seqlens(0)));
  for (std::int64_t n = 0; n < last; ++n)
    if (cu_seqlens(n + 1) < cu_seqlens(n))
      throw argument_error("cu_seqlens[" + std::to_string(n + 1) + "]", "at least " + std::to_string(cu_seqlens(n)),
                           std::to_string(cu_seqlens(n + 1)));
  if (cu_seqlens(last) != tokens)
    throw argument_error("cu_seqlens[" + std::to_string(last) + "]", "T = " + std::to_string(tokens),
                         std::to_string(cu_seqlens(last)));
}

/// Applies f(value, position) to every element of a tensor of rank ≤ 4.
template <class T, class F>
void for_each_element(view<T> const& tensor, F f) {
  if (!tensor.present()) return;
  std::int64_t extent[4], index[4];
  for (int axis = 0; axis < 4; ++axis) extent[axis] = axis < tensor.rank ? tensor.extent[axis] : 1;
  for (index[0] = 0; index[0] < extent[0]; ++index[0])
    for (index[1] = 0; index[1] < extent[1]; ++index[1])
      for (index[2] = 0; index[2] < extent[2]; ++index[2])
        for (index[3] = 0; index[3] < extent[3]; ++index[3]) f(*tensor.at(index[0], index[1], index[2], index[3]), index);
}

template <class T>
std::string element_name(char const* name, view<T> const& tensor, std::int64_t const* index) {
  return name + extents_text(index, index + tensor.rank);
}

/// The tensor [slice, ...] of one index of its first axis, which remains.
template <class T>
view<T> slice_of(view<T> tensor, std::int64_t index) {
  tensor.data += index * tensor.stride[0];
  tensor.extent[0] = 1;
  return tensor;
}

/// Refuses the first element of `tensor` that f(x) says is wrong. `first` is the number of its first slice, for the message. Runs along
/// the last axis are asked as a whole before their elements are: one or over a run costs a fraction of a branch an element.
template <class T, class Wrong>
void check_each(char const* name, view<T> const& tensor, std::int64_t first, char const* expected, Wrong wrong) {
  if (!tensor.present()) return;
  view<T> runs = tensor;
  int const last = tensor.rank - 1;
  std::int64_t const count = tensor.extent[last], step = tensor.stride[last];
  runs.extent[last] = count > 0 ? 1 : 0;
  for_each_element(runs, [&](T const& start, std::int64_t const* index) {
    T const* const at = &start;
    bool any = false;
    if (step == 1)
      for (std::int64_t i = 0; i < count; ++i) any |= wrong(at[i]);
    else
      for (std::int64_t i = 0; i < count; ++i) any |= wrong(at[i * step]);
    if (!any) return;
    std::int64_t i = 0, place[4] = {index[0], index[1], index[2], index[3]};
    while (!wrong(at[i * step])) ++i;
    place[last] = i;
    place[0] += first;
    throw argument_error(element_name(name, tensor, place), expected, number_text(static_cast<double>(at[i * step])));
  });
}

/// log_decay ≤ 0. A NaN passes: it stays in its own head and sequence.
template <class T>
void check_gates(view<T> const& log_decay, std::int64_t first = 0) {
  check_each("log_decay", log_decay, first, "a natural logarithm of the gate, at most 0", [](T x) { return x > 0; });
}

/// β ≥ 0. A NaN or an infinity passes.
template <class T>
void check_beta(view<T> const& beta, std::int64_t first = 0) {
  check_each("beta", beta, first, "a precision of at least 0", [](T x) { return x < 0; });
}

/// prior > 0, normal and finite: a subnormal one has a reciprocal of infinity.
template <class T>
void check_prior(view<T> const& prior) {
  using limits = std::numeric_limits<std::remove_const_t<T>>;
  check_each("prior", prior, 0, "a finite, normal precision above 0",
             [](T x) { return !(x >= (limits::min)() && x <= (limits::max)()); });
}

/// Evidence of a full memory is symmetric, to the rounding of whoever made it. The measure of J_ij is J_ii + J_jj ≥ 2|J_ij|: sums
/// that cancel leave elements near zero whose two roundings agree in no digit.
template <class T>
void check_symmetric(char const* name, view<T> const& evidence, std::int64_t first = 0) {
  for_each_element(evidence, [&](T const& x, std::int64_t const* i) {
    T const y = *evidence.at(i[0], i[1], i[3], i[2]);
    T const measure = *evidence.at(i[0], i[1], i[2], i[2]) + *evidence.at(i[0], i[1], i[3], i[3]);
    T const gap = x < y ? y - x : x - y;
    if (!(gap > T(1e-4) * (measure < 0 ? -measure : measure))) return;
    std::int64_t const place[] = {first + i[0], i[1], i[2], i[3]};
    throw argument_error(element_name(name, evidence, place), "a symmetric matrix per head",
                         number_text(static_cast<double>(x)) + " against " + number_text(static_cast<double>(y)) +
                             " across the diagonal");
  });
}

/// Evidence of at least 0: every cell of a diagonal memory, the diagonal of a full one, which is symmetric besides. A NaN passes.
template <class Rule, class T>
void check_evidence(char const* name, view<T> const& evidence, std::int64_t first = 0) {
  if (!evidence.present()) return;
  if constexpr (Rule::keeps_full) {
    view<T> diagonal = evidence;  // [N,HV,K]
    diagonal.rank = 3;
    diagonal.stride[2] += evidence.stride[3];
    auto const refuse = [&](T const& x, std::int64_t const* i) {
      std::int64_t const place[] = {first + i[0], i[1], i[2], i[2]};
      if (x < 0)
        throw argument_error(element_name(name, evidence, place), "evidence of at least 0", number_text(static_cast<double>(x)));
    };
    for_each_element(diagonal, refuse);
    check_symmetric(name, evidence, first);
  } else {
    check_each(name, evidence, first, "evidence of at least 0", [](T x) { return x < 0; });
  }
}

}  // namespace detail

/// Checks what only the contents of a scan's inputs can break. Host memory only.
/// @throws argument_error
template <any_rule Rule, class Storage, class Scalar>
void check_values(scan_inputs<Storage, Scalar> const& in, scan_shape const& s) {
  detail::check_boundaries(in.cu_seqlens, s.tokens);
  detail::check_gates(in.log_decay);
  detail::check_beta(in.beta);
  detail::check_prior(in.prior);
  detail::check_evidence<Rule>("initial_evidence", in.initial_evidence);
}

/// A slot that a row of a step writes.
struct written_slot {
  std::int64_t slot;  ///< number in the pool
  std::int64_t row;   ///< batch row
};

/// How many written_slot entries check_values needs as scratch for a step.
template <class Storage, class Scalar>
std::int64_t written_slots(step_arguments<Storage, Scalar> const& a, scan_shape const& s) {
  bool const snapshots = a.slot_out.present() && a.slot_out.rank == 2;
  return a.slot_in.present() || a.slot_out.present() ? s.batch * (snapshots ? s.tokens : 1) : 0;
}

/// Where row b of a step reads its state; -1 = inert row.
template <class Storage, class Scalar>
std::int64_t slot_read(step_arguments<Storage, Scalar> const& a, std::int64_t b) {
  return a.slot_in.present() ? a.slot_in(b) : b;
}

/// Where row b of a step writes its state after token t; -1 = nowhere.
template <class Storage, class Scalar>
std::int64_t slot_written(step_arguments<Storage, Scalar> const& a, scan_shape const& s, std::int64_t b, std::int64_t t) {
  if (a.slot_out.present() && a.slot_out.rank == 2) return a.slot_out(b, t);
  if (t + 1 != s.tokens) return -1;
  return a.slot_out.present() ? a.slot_out(b) : slot_read(a, b);
}

namespace detail {

/// Every slot in range, none written twice, none written that another row reads.
template <class Storage, class Scalar>
void check_slots(step_arguments<Storage, Scalar> const& a, scan_shape const& s, written_slot* scratch) {
  if (!a.slot_in.present() && !a.slot_out.present()) return;
  std::int64_t const slots = a.eta.extent[0];
  auto const name = [](char const* list, std::int64_t row) { return std::string(list) + "[" + std::to_string(row) + "]"; };
  auto const in_range = [&](char const* list, std::int64_t row, std::int64_t slot) {
    if (slot < -1 || slot >= slots)
      throw argument_error(name(list, row), "-1 or a slot below " + std::to_string(slots), std::to_string(slot));
  };
  written_slot* end = scratch;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    in_range("slot_in", b, slot_read(a, b));
    if (slot_read(a, b) < 0) continue;
    for (std::int64_t t = 0; t < s.tokens; ++t) {
      std::int64_t const slot = slot_written(a, s, b, t);
      in_range("slot_out", b, slot);
      if (slot >= 0) *end++ = {slot, b};
    }
  }
  auto const before = [](written_slot x, written_slot y) { return x.slot != y.slot ? x.slot < y.slot : x.row < y.row; };
  std::sort(scratch, end, before);
  for (written_slot* w = scratch; w + 1 < end; ++w)
    if (w[0].slot == w[1].slot)
      throw argument_error(name("slot_out", w[1].row), "a slot that nothing else in the call writes",
                           "slot " + std::to_string(w->slot) + ", also written by row " + std::to_string(w->row));
  for (std::int64_t b = 0; b < s.batch; ++b) {
    written_slot const* const w = std::lower_bound(scratch, end, written_slot{slot_read(a, b), -1}, before);
    if (w != end && w->slot == slot_read(a, b) && w->row != b)
      throw argument_error(name("slot_out", w->row), "a slot that no other row reads",
                           "slot " + std::to_string(w->slot) + ", read by row " + std::to_string(b));
  }
}

}  // namespace detail

/// Checks what only the contents of a step's tensors can break, pools apart: prior and slots, gates and β of the rows that are live.
/// Nothing of an inert row is read. Host memory only. `scratch` has written_slots(a, s) entries.
/// @throws argument_error
template <any_rule Rule, class Storage, class Scalar>
void check_values(step_arguments<Storage, Scalar> const& a, scan_shape const& s, written_slot* scratch) {
  constexpr bool constant = Rule::forget_type::scope == gate_scope::constant;
  detail::check_prior(a.prior);
  detail::check_slots(a, s, scratch);
  if constexpr (constant) detail::check_gates(a.log_decay);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    if (slot_read(a, b) < 0) continue;
    if (!constant && a.log_decay.present()) detail::check_gates(detail::slice_of(a.log_decay, b), b);
    if (a.beta.present()) detail::check_beta(detail::slice_of(a.beta, b), b);
  }
}

/// Checks the evidence in the slot that row b of a step reads, as check_values does that of a scan. Nothing for an inert row, or for a
/// step of no tokens.
/// @throws argument_error
template <any_rule Rule, class Storage, class Scalar>
void check_slot(step_arguments<Storage, Scalar> const& a, scan_shape const& s, std::int64_t b) {
  std::int64_t const slot = slot_read(a, b);
  if (slot < 0 || s.tokens == 0 || !a.evidence.present()) return;
  detail::check_evidence<Rule>("evidence", detail::slice_of(a.evidence, slot), slot);
}

}  // namespace palimpsa
