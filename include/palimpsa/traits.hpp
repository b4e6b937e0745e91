#pragma once
/// @file
/// What follows from a rule for those who pick an algorithm: the algebra of its transition, of its read, and its chunked form.
/// Specialised code asks these, never for the name of a rule.

#include "palimpsa/rule.hpp"

namespace palimpsa {

/// How one token moves the state η: η ← A η + b.
enum class transition {
  scalar,    ///< A = α
  per_key,   ///< A = diag(α_j), the same for every row
  diagonal,  ///< A differs from cell to cell (Longhorn, user gains)
  rank_one   ///< A = α(I - g k kᵀ) (the DeltaNets) or its precision-weighted form
};

/// What a read needs.
enum class read_kind {
  mean,      ///< η·q
  diagonal,  ///< a division a cell
  solve      ///< a linear system a head and token
};

/// The matrix form of a chunk of tokens, where there is one.
enum class chunk_form {
  none,         ///< token by token only
  products,     ///< two matrix products (Mamba2)
  divided_read, ///< chunk states by matrix products, the read elementwise (Palimpsa)
  wy,           ///< a unit-triangular system (DeltaNets, β per head)
  solved_read   ///< matrix products, the read through one solve a token (MesaNet)
};

/// The algebra of a rule's transition.
template <any_rule R>
inline constexpr transition transition_of =
    R::adds ? (R::forget_type::scope == gate_scope::key ? transition::per_key : transition::scalar)
    : R::evidence_type::sees_all ? transition::rank_one
                                 : transition::diagonal;

/// The algebra of a rule's read.
template <any_rule R>
inline constexpr read_kind read_of = R::keeps_full       ? read_kind::solve
                                     : R::keeps_diagonal ? read_kind::diagonal
                                                         : read_kind::mean;

/// Whether a rule is a DeltaNet: the whole prediction corrects the mean, and no precision is kept.
template <any_rule R>
inline constexpr bool is_delta = !R::keeps_precision && std::is_same_v<typename R::evidence_type, evidence::full> &&
                                 (std::is_same_v<typename R::gain_type, gain::plain> ||
                                  std::is_same_v<typename R::gain_type, gain::exact>);

/// The chunked form of a rule.
template <any_rule R>
inline constexpr chunk_form chunked_form = R::adds && R::keeps_full       ? chunk_form::solved_read
                                           : R::adds && R::keeps_diagonal ? chunk_form::divided_read
                                           : R::adds                      ? chunk_form::products
                                           : is_delta<R>                  ? chunk_form::wy
                                                                          : chunk_form::none;

/// For printing.
constexpr char const* name_of(transition t) {
  switch (t) {
    case transition::scalar: return "scalar";
    case transition::per_key: return "per key";
    case transition::diagonal: return "diagonal";
    case transition::rank_one: return "rank one";
  }
  return "?";
}

/// For printing.
constexpr char const* name_of(read_kind r) {
  switch (r) {
    case read_kind::mean: return "mean";
    case read_kind::diagonal: return "diagonal";
    case read_kind::solve: return "solve";
  }
  return "?";
}

/// For printing.
constexpr char const* name_of(chunk_form f) {
  switch (f) {
    case chunk_form::none: return "none";
    case chunk_form::products: return "products";
    case chunk_form::divided_read: return "products, divided read";
    case chunk_form::wy: return "WY";
    case chunk_form::solved_read: return "products, solved read";
  }
  return "?";
}

}  // namespace palimpsa
