// A user's file on every path, in each kind of arithmetic and storage: compiled with a user's warnings, all errors (no_warning.*).

#include "palimpsa/palimpsa.hpp"

namespace {

template <class Rule, class T>
void call(palimpsa::scan_inputs<T> const& in, palimpsa::scan_outputs<T> const& out, palimpsa::step_arguments<T> const& one,
          palimpsa::scan_cotangents<T> const& up, palimpsa::scan_gradients<T> const& down) {
  palimpsa::scan<Rule>(palimpsa::sequential{}, in, out, palimpsa::allocate);
  palimpsa::scan<Rule>(palimpsa::chunked{64}, in, out, palimpsa::allocate);
  palimpsa::step<Rule>(palimpsa::sequential{}, one, palimpsa::allocate);
  palimpsa::scan_backward<Rule>(palimpsa::checkpointed{64}, in, up, down, palimpsa::allocate);
}

template <class T>
void call_all() {
  call<palimpsa::Palimpsa, T>({}, {}, {}, {}, {});
  call<palimpsa::GatedDeltaNet, T>({}, {}, {}, {}, {});
}

}  // namespace

int main() {
  call_all<float>();
  call_all<double>();
  call_all<Eigen::bfloat16>();
}
