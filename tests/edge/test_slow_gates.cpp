// Slow gates over long memories. Token by token every token rounds its gate and the state, and a constant gate rounds the same way each
// time: the law is one 2⁻²⁴ (float) a token of memory. In chunks the gates of a chunk are one rounding.

#include <cmath>

#include "edge/slow_gates.hpp"
#include "support/catch.hpp"

using namespace palimpsa_test;

namespace {

/// CHECKs out, its last 64 tokens' worth, and the state, against a bound.
void hold(engine const& e, std::int64_t T, double log_decay, double bound) {
  edge_problem const p = draw_slow(e.at, T, log_decay, 9000);
  auto const [out, eta] = long_answers(e.at, p);
  answers const a = e.in_float(p);
  numbers const& got = at(a, result::out);
  INFO(e.name << ", " << T << " tokens under log_decay " << log_decay);
  PALIMPSA_TEST_CLOSE("out", got, out, bound);
  PALIMPSA_TEST_CLOSE("the last reads", numbers(got.end() - 64, got.end()), numbers(out.end() - 64, out.end()), bound);
  PALIMPSA_TEST_CLOSE("final_eta", at(a, result::eta), eta, bound);
}

}  // namespace

TEST_CASE("Token by token a slow gate costs one rounding a token of memory") {
  for (engine const& e : every_engine()) {
    if (e.at.forget == gates::none) continue;
    for (double log_decay : {-3e-8, -1e-6, -1e-4, -1e-3})
      for (std::int64_t T : {4096, 16384}) hold(e, T, log_decay, std::ldexp(memory_length(T, log_decay), -24) + 1e-6);
  }
  for (engine const& e : engines_with_memory()) hold(e, 65536, -1e-5, std::ldexp(memory_length(65536, -1e-5), -24) + 1e-6);
}

TEST_CASE("In chunks a slow gate costs less than 1e-5") {
  for (engine const& e : engines_in_chunks())
    for (double log_decay : {-3e-8, -1e-6, -1e-4, -1e-3})
      for (std::int64_t T : {4096, 16384}) hold(e, T, log_decay, 1e-5);
  hold(engines_in_chunks().front(), 65536, -1e-5, 1e-5);
}
