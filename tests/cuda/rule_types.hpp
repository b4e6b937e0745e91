#pragma once
// From the name of a rule, picked at run time, to its type. Every point the GPU tests reach: seven writes × four ways to forget × two
// weightings, less a full memory with a gate a key, which is no rule.

#include <stdexcept>
#include <type_traits>

#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/longhorn.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "support/problem.hpp"

namespace palimpsa_test {

template <kind Write>
struct written_as;
template <> struct written_as<kind::mamba2> { using type = palimpsa::Mamba2; };
template <> struct written_as<kind::longhorn> { using type = palimpsa::Longhorn; };
template <> struct written_as<kind::delta> { using type = palimpsa::GatedDeltaNet; };
template <> struct written_as<kind::implicit_delta> { using type = palimpsa::ImplicitGatedDeltaNet; };
template <> struct written_as<kind::palimpsa> { using type = palimpsa::Palimpsa; };
template <> struct written_as<kind::diagonal_kalman> { using type = palimpsa::DiagonalKalman; };
template <> struct written_as<kind::mesa_net> { using type = palimpsa::MesaNet; };

template <gates Forget>
struct forgets_by;
template <> struct forgets_by<gates::none> { using type = palimpsa::forget::none; };
template <> struct forgets_by<gates::constant> { using type = palimpsa::forget::constant; };
template <> struct forgets_by<gates::head> { using type = palimpsa::forget::per_head; };
template <> struct forgets_by<gates::key> { using type = palimpsa::forget::per_key; };

/// The type of a rule.
template <kind Write, gates Forget, bool Preweighted>
using rule_type = palimpsa::with_weighting<
    palimpsa::with_forget<typename written_as<Write>::type, typename forgets_by<Forget>::type>,
    std::conditional_t<Preweighted, palimpsa::weighting::preweighted, palimpsa::weighting::likelihood>>;

/// Whether it is a rule.
constexpr bool exists(rule_name r) { return r.write != kind::mesa_net || r.forget != gates::key; }

}  // namespace palimpsa_test
