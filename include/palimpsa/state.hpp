#pragma once
/// @file
/// A memory in the natural parameters the library carries, (η, J), and in the mean and importance of the paper, (μ, I).
///
///     diagonal memory   I = prior + J                 μ = η / I      cell by cell
///     full memory       I = Λ = diag(prior) + J       μ = η Λ⁻¹
///     no memory         μ = η, since R = 1; there is no I
///
/// I is the importance of arXiv 2602.09075: the precision of the belief, at the prior where nothing was learnt. Going there and back
/// returns η to a few roundings (times the condition of a full Λ) and J to a rounding of prior + J.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "palimpsa/cpu/head.hpp"
#include "palimpsa/cpu/solve.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/validate_values.hpp"
#include "palimpsa/workspace.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// Natural parameters: what scan and step read and write. T is the scalar, const where it is read.
template <class T>
struct natural_state {
  view<T> eta;       ///< η [N,HV,V,K]
  view<T> evidence;  ///< J [N,HV,V,K] or [N,HV,K,K], positive semidefinite; absent iff the rule keeps no precision
};

/// Moments: what a belief says. T is the scalar, const where it is read.
template <class T>
struct moment_state {
  view<T> mean;        ///< μ [N,HV,V,K]
  view<T> importance;  ///< I, shaped as the evidence; absent iff the rule keeps no precision
};

namespace detail {

template <class T>
scan_shape shape_of_state(char const* name, view<T> const& eta) {
  if (eta.rank != 4) throw argument_error(name, "[N,HV,V,K]", shape_text(eta));
  scan_shape s;
  s.sequences = eta.extent[0];
  s.value_heads = eta.extent[1];
  s.values = eta.extent[2];
  s.keys = eta.extent[3];
  if (s.sequences < 0 || s.value_heads < 0) throw argument_error(name, "sizes of at least 0", shape_text(eta));
  require_channels(name, s.keys);
  if (s.values < 1 || s.values > max_channels)
    throw argument_error(name, "from 1 to " + std::to_string(max_channels) + " values", std::to_string(s.values));
  return s;
}

/// η, μ, J or I, which a conversion cannot do without.
template <class Rule, class T>
void require_state(char const* mean_name, view<T> const& mean, char const* precision_name, view<T> const& precision,
                   scan_shape const& s) {
  if (!mean.present()) throw argument_error(mean_name, "[N,HV,V,K]", "absent");
  require_eta(mean_name, mean, s, s.sequences);
  if (Rule::keeps_precision && !precision.present())
    throw argument_error(precision_name, Rule::keeps_full ? "[N,HV,K,K]" : "[N,HV,V,K]", "absent");
  require_evidence<Rule>(precision_name, precision, s, s.sequences);
}

/// No importance is below its prior, but for rounding.
template <class Rule, class T>
void check_importance(view<T> const& importance, view<T> const& prior) {
  constexpr auto rounding = 4 * std::numeric_limits<std::remove_const_t<T>>::epsilon();
  for_each_element(importance, [&](T const& x, std::int64_t const* i) {
    if (Rule::keeps_full && i[2] != i[3]) return;
    T const least = prior.rank > 1 ? prior(i[1], i[3]) : prior(i[1]);
    if (x < least * (1 - rounding))
      throw argument_error(element_name("importance", importance, i),
                           "at least the prior, " + number_text(static_cast<double>(least)), number_text(static_cast<double>(x)));
  });
}

/// One head of each tensor: η and J, or μ and I.
template <class T>
struct head_state {
  cpu::plane<T> mean, precision;
};

/// μ = η / I, I = prior + J.
template <class Rule, class Scalar>
void divide_by_importance(head_state<Scalar const> from, cpu::plane<Scalar const> prior, head_state<Scalar> to, scan_shape const& s) {
  for (std::int64_t i = 0; i < s.values; ++i)
    for (std::int64_t j = 0; j < s.keys; ++j) {
      Scalar const importance = Rule::keeps_diagonal ? prior(0, 0) + from.precision(i, j) : Scalar(1);
      to.mean(i, j) = from.mean(i, j) / importance;
      if constexpr (Rule::keeps_diagonal) to.precision(i, j) = importance;
    }
}

/// I - prior; an importance that rounding left below its prior is the prior.
template <class T>
T above(T importance, T prior) {
  return importance < prior ? T(0) : importance - prior;
}

/// η = μ ⊙ I, J = I - prior.
template <class Rule, class Scalar>
void multiply_by_importance(head_state<Scalar const> from, cpu::plane<Scalar const> prior, head_state<Scalar> to,
                            scan_shape const& s) {
  for (std::int64_t i = 0; i < s.values; ++i)
    for (std::int64_t j = 0; j < s.keys; ++j) {
      Scalar const importance = Rule::keeps_diagonal ? from.precision(i, j) : Scalar(1);
      to.mean(i, j) = from.mean(i, j) * importance;
      if constexpr (Rule::keeps_diagonal) to.precision(i, j) = above(importance, prior(0, 0));
    }
}

/// μ = η Λ⁻¹, Λ = diag(prior) + J.
template <class Scalar>
void divide_by_matrix(head_state<Scalar const> from, cpu::plane<Scalar const> prior, head_state<Scalar> to, scan_shape const& s,
                      std::byte* scratch) {
  arena memory(scratch);
  cpu::precision_matrix<Scalar> matrix;
  matrix.take(memory, s.keys);
  matrix.load(from.precision);
  matrix.factorise(prior);
  Scalar row[max_channels] = {};
  for (std::int64_t i = 0; i < s.values; ++i) {
    for (std::int64_t j = 0; j < s.keys; ++j) row[j] = from.mean(i, j);
    matrix.solve(row);
    for (std::int64_t j = 0; j < s.keys; ++j) to.mean(i, j) = static_cast<Scalar>(matrix.solution[j]);
  }
  for (std::int64_t i = 0; i < s.keys; ++i)
    for (std::int64_t j = 0; j < s.keys; ++j)
      to.precision(i, j) = i == j ? prior(0, i) + from.precision(i, i) : from.precision(i, j);
}

/// η = μ Λ, J = Λ - diag(prior).
template <class Scalar>
void multiply_by_matrix(head_state<Scalar const> from, cpu::plane<Scalar const> prior, head_state<Scalar> to, scan_shape const& s) {
  Scalar row[max_channels] = {};
  for (std::int64_t i = 0; i < s.values; ++i) {
    for (std::int64_t j = 0; j < s.keys; ++j) row[j] = from.mean(i, j);
    for (std::int64_t j = 0; j < s.keys; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < s.keys; ++l) sum += static_cast<double>(row[l]) * static_cast<double>(from.precision(l, j));
      to.mean(i, j) = static_cast<Scalar>(sum);
    }
  }
  for (std::int64_t i = 0; i < s.keys; ++i)
    for (std::int64_t j = 0; j < s.keys; ++j)
      to.precision(i, j) = i == j ? above(from.precision(i, i), prior(0, i)) : from.precision(i, j);
}

/// f(from, prior, to) for every head of every sequence.
template <class Scalar, class F>
void convert_heads(scan_shape const& s, view<Scalar const> mean, view<Scalar const> precision, view<Scalar const> prior,
                   view<Scalar> to_mean, view<Scalar> to_precision, F f) {
  for (std::int64_t n = 0; n < s.sequences; ++n)
    for (std::int64_t h = 0; h < s.value_heads; ++h)
      f(head_state<Scalar const>{cpu::state_of(mean, n, h), cpu::state_of(precision, n, h)}, cpu::prior_of(prior, h),
        head_state<Scalar>{cpu::state_of(to_mean, n, h), cpu::state_of(to_precision, n, h)});
}

}  // namespace detail

/// Bytes of workspace that `to_moments<Rule>` needs: a factorisation for a full memory, otherwise none.
template <any_rule Rule, class Scalar>
std::size_t to_moments_workspace(view<Scalar> eta) {
  scan_shape const s = detail::shape_of_state("eta", eta);
  arena count;
  if constexpr (Rule::keeps_full) cpu::precision_matrix<std::remove_const_t<Scalar>>().take(count, s.keys);
  return detail::padded(count.used());
}

/// (η, J) to (μ, I). μ may be the memory of η, and I that of J, under the same strides.
/// @param prior    [HV], for a full memory also [HV,K]; absent iff the rule keeps no precision
/// @param scratch  at least to_moments_workspace<Rule>(from.eta) bytes; its contents do not matter
/// @throws argument_error  naming tensor, expected and given; nothing has been written then
template <any_rule Rule, class Scalar>
void to_moments(natural_state<std::type_identity_t<Scalar> const> from, view<std::type_identity_t<Scalar> const> prior,
                moment_state<Scalar> to, workspace scratch = {}) {
  scan_shape const s = detail::shape_of_state("eta", from.eta);
  detail::require_state<Rule>("eta", from.eta, "evidence", from.evidence, s);
  detail::require_prior<Rule>("prior", prior, s);
  detail::require_state<Rule>("mean", to.mean, "importance", to.importance, s);
  detail::check_prior(prior);
  detail::check_evidence<Rule>("evidence", from.evidence);
  std::byte* const base = detail::aligned_workspace(scratch, to_moments_workspace<Rule>(from.eta));

  detail::convert_heads<Scalar>(s, from.eta, from.evidence, prior, to.mean, to.importance, [&](auto in, auto p, auto out) {
    if constexpr (Rule::keeps_full)
      detail::divide_by_matrix(in, p, out, s, base);
    else
      detail::divide_by_importance<Rule>(in, p, out, s);
  });
}

/// (μ, I) to (η, J). η may be the memory of μ, and J that of I, under the same strides. I must not be below the prior.
/// @param prior  as for to_moments
/// @throws argument_error  naming tensor, expected and given; nothing has been written then
template <any_rule Rule, class Scalar>
void to_natural(moment_state<std::type_identity_t<Scalar> const> from, view<std::type_identity_t<Scalar> const> prior,
                natural_state<Scalar> to) {
  scan_shape const s = detail::shape_of_state("mean", from.mean);
  detail::require_state<Rule>("mean", from.mean, "importance", from.importance, s);
  detail::require_prior<Rule>("prior", prior, s);
  detail::require_state<Rule>("eta", to.eta, "evidence", to.evidence, s);
  detail::check_prior(prior);
  detail::check_importance<Rule>(from.importance, prior);
  if constexpr (Rule::keeps_full) detail::check_symmetric("importance", from.importance);

  detail::convert_heads<Scalar>(s, from.mean, from.importance, prior, to.eta, to.evidence, [&](auto in, auto p, auto out) {
    if constexpr (Rule::keeps_full)
      detail::multiply_by_matrix(in, p, out, s);
    else
      detail::multiply_by_importance<Rule>(in, p, out, s);
  });
}

}  // namespace palimpsa
