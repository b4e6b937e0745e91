#pragma once
/// @file
/// The version of the library: the one place where it is written. CMake reads these lines.

/// Raised when a program that compiled may no longer compile, or computes something else. While it is 0, the minor number is.
#define PALIMPSA_VERSION_MAJOR 0
/// Raised when something is added; before 1.0 also when a program may no longer compile, or computes something else.
#define PALIMPSA_VERSION_MINOR 1
/// Raised when something is mended.
#define PALIMPSA_VERSION_PATCH 0

namespace palimpsa {

/// A version by its three numbers. They are macros too, because the preprocessor reads no constants.
struct version_number {
  int major;  ///< PALIMPSA_VERSION_MAJOR
  int minor;  ///< PALIMPSA_VERSION_MINOR
  int patch;  ///< PALIMPSA_VERSION_PATCH
};

/// The version of the headers this translation unit includes.
inline constexpr version_number version{PALIMPSA_VERSION_MAJOR, PALIMPSA_VERSION_MINOR, PALIMPSA_VERSION_PATCH};

}  // namespace palimpsa
