#pragma once
/// @file
/// The pair of partial derivatives that evidence and gain policies report, and the number one for scalars and packs alike.

#include "palimpsa/detail/config.hpp"

namespace palimpsa {

/// Partial derivatives of a policy's value with respect to its two arguments.
template <class T>
struct slopes {
  T own;  ///< with respect to the cell's own term
  T all;  ///< with respect to the sum over the keys
};

/// One, as a scalar or in every lane of a pack.
template <class T>
PALIMPSA_HD constexpr T unit() {
  return T{} + 1;
}

}  // namespace palimpsa
