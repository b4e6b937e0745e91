#pragma once
// What unit.cpp and run.cpp agree on: a build calls the library by a few rules on every path and tells what came out, bit by bit.

#include <cstdint>

namespace palimpsa_test {

/// One tensor that a call wrote, as a hash of its bits.
using tell = void (*)(char const* build, char const* rule, char const* path, char const* tensor, std::uint64_t bits);

}  // namespace palimpsa_test

// The builds there are; a program links some of them.
extern "C" {
__attribute__((weak)) void run_build_plain(palimpsa_test::tell);
__attribute__((weak)) void run_build_avx2(palimpsa_test::tell);
__attribute__((weak)) void run_build_native(palimpsa_test::tell);
__attribute__((weak)) void run_build_plain_o3(palimpsa_test::tell);
__attribute__((weak)) void run_build_avx2_o1(palimpsa_test::tell);
__attribute__((weak)) void run_build_avx2_o3(palimpsa_test::tell);
__attribute__((weak)) void run_build_avx2_other(palimpsa_test::tell);
}
