#include "edge/engine_of.hpp"
#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"
#include "palimpsa/scan_chunked.hpp"

namespace palimpsa_test {
namespace {

template <class Rule, class S> answers run_chunked(edge_problem const& p) {
  answers a;
  forward_into(a, p, edge_call<Rule, S>(p), palimpsa::chunked{p.T > 100 ? 64 : 2, 1});
  return a;
}

template <class Rule> engine chunked_of(char const* name) {
  return {name, axes_of<Rule>(), &run_chunked<Rule, float>, &run_chunked<Rule, double>};
}

}  // namespace

std::vector<engine> engines_in_chunks() {
  using namespace palimpsa;
  return {chunked_of<Mamba2>("Mamba2 in chunks"), chunked_of<RetNet>("RetNet in chunks"), chunked_of<GatedDeltaNet>("GatedDeltaNet in chunks"),
          chunked_of<ImplicitGatedDeltaNet>("ImplicitGatedDeltaNet in chunks"), chunked_of<Palimpsa>("Palimpsa in chunks"),
          chunked_of<MesaNet>("MesaNet in chunks")};
}

}  // namespace palimpsa_test
