#pragma once
// An associative scan of affine maps by Thrust; compiled by nvcc in thrust_scan.cu.

#include <vector>

namespace palimpsa_test {

/// x ← a x + b.
struct affine {
  double a, b;
};

/// The composition of maps 0 to t, for every t.
std::vector<affine> inclusive_scan_on_gpu(std::vector<affine> const& maps);

}  // namespace palimpsa_test
