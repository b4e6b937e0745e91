#pragma once
// Catch2 2.13 and 3: one set of names for both.

#include <string>

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_adapters.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using Catch::Approx;
namespace palimpsa_test {
inline auto contains(std::string const& text) { return Catch::Matchers::ContainsSubstring(text); }
}  // namespace palimpsa_test
#undef SKIP  // 3.x ends with code 4 where all is skipped, which is also what four failed assertions give
#else
#include <catch2/catch.hpp>
namespace palimpsa_test {
inline auto contains(std::string const& text) { return Catch::Matchers::Contains(text); }
}  // namespace palimpsa_test
#endif

// Leaves the test case, says why, and passes. ctest shows a whole file as skipped by this text where that is allowed.
#define SKIP(reason)              \
  do {                            \
    WARN("skipped: " << reason);  \
    SUCCEED("skipped");           \
    return;                       \
  } while (false)
