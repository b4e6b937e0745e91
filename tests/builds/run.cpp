// Runs the builds that were linked into this program, whichever they are: one line a tensor.

#include <cstdio>
#include <initializer_list>

#include "builds.hpp"

namespace {

void print(char const* build, char const* rule, char const* path, char const* tensor, std::uint64_t bits) {
  std::printf("%s %s %s %s %016llx\n", build, rule, path, tensor, static_cast<unsigned long long>(bits));
}

}  // namespace

int main() {
  for (auto const run : {run_build_plain, run_build_plain_o3, run_build_avx2, run_build_avx2_o1, run_build_avx2_o3, run_build_avx2_other,
                         run_build_native})
    if (run != nullptr) run(print);
}
