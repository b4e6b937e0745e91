#pragma once
/// @file
/// Gradients by differences, to hold scan_backward against: the check for a policy of one's own, whose slopes are what can be wrong.
/// Slow (several scans per element) and allocating: for tests and examples at small sizes. Not in the umbrella.
///
/// The loss is Σ cotangent · output over a scan in double. Its derivative with respect to an element x is
///
///     (8 (f(x+h) - f(x-h)) - (f(x+2h) - f(x-2h))) / 12h        error h⁴/30 f⁽⁵⁾, and rounding ε f/h
///
/// and where a gate may not rise above 0, or β and evidence not fall below it, the one-sided
/// (25 f(x) - 48 f(x-h) + 36 f(x-2h) - 16 f(x-3h) + 3 f(x-4h)) / 12h.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "palimpsa/arguments.hpp"
#include "palimpsa/detail/config.hpp"
#include "palimpsa/scan.hpp"
#include "palimpsa/scan_backward.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// What scan_backward gives gradients of.
enum class scan_tensor { q, k, v, beta, log_decay, prior, initial_eta, initial_evidence };

/// All of them.
inline constexpr scan_tensor every_scan_tensor[] = {scan_tensor::q,         scan_tensor::k,     scan_tensor::v,
                                                    scan_tensor::beta,      scan_tensor::log_decay, scan_tensor::prior,
                                                    scan_tensor::initial_eta, scan_tensor::initial_evidence};

/// For messages; the names of the contract.
constexpr char const* name_of(scan_tensor which) {
  switch (which) {
    case scan_tensor::q: return "q";
    case scan_tensor::k: return "k";
    case scan_tensor::v: return "v";
    case scan_tensor::beta: return "beta";
    case scan_tensor::log_decay: return "log_decay";
    case scan_tensor::prior: return "prior";
    case scan_tensor::initial_eta: return "initial_eta";
    case scan_tensor::initial_evidence: return "initial_evidence";
  }
  return "?";
}

/// Where scan_backward and differences are furthest apart.
struct gradient_comparison {
  double worst = 0;           ///< the largest difference, relative to the largest gradient of the tensor
  std::int64_t element = 0;   ///< where, in row-major order
  double analytic = 0;        ///< what scan_backward says there
  double numerical = 0;       ///< what differences say there
};

namespace detail {

inline view<double const> scan_inputs<double>::*input_of(scan_tensor which) {
  using in = scan_inputs<double>;
  switch (which) {
    case scan_tensor::q: return &in::q;
    case scan_tensor::k: return &in::k;
    case scan_tensor::v: return &in::v;
    case scan_tensor::beta: return &in::beta;
    case scan_tensor::log_decay: return &in::log_decay;
    case scan_tensor::prior: return &in::prior;
    case scan_tensor::initial_eta: return &in::initial_eta;
    case scan_tensor::initial_evidence: break;
  }
  return &in::initial_evidence;
}

inline view<double> scan_gradients<double>::*gradient_of(scan_tensor which) {
  using down = scan_gradients<double>;
  switch (which) {
    case scan_tensor::q: return &down::grad_q;
    case scan_tensor::k: return &down::grad_k;
    case scan_tensor::v: return &down::grad_v;
    case scan_tensor::beta: return &down::grad_beta;
    case scan_tensor::log_decay: return &down::grad_log_decay;
    case scan_tensor::prior: return &down::grad_prior;
    case scan_tensor::initial_eta: return &down::grad_initial_eta;
    case scan_tensor::initial_evidence: break;
  }
  return &down::grad_initial_evidence;
}

/// A tensor with memory of its own, row-major.
struct dense_tensor {
  std::vector<double> values;
  view<double> whole;

  /// Shaped as `like`, zeros.
  template <class T>
  explicit dense_tensor(view<T> const& like) : values(static_cast<std::size_t>(like.present() ? element_count(like) : 0)) {
    whole.data = values.data();
    whole.rank = like.rank;
    for (int axis = 0; axis < like.rank; ++axis) whole.extent[axis] = like.extent[axis];
    dense_strides(whole.rank, whole.extent, whole.stride);
  }

  /// Takes the values of a tensor of the same shape.
  void copy(view<double const> const& from) {
    std::size_t i = 0;
    for_each_element(from, [&](double x, std::int64_t const*) { values[i++] = x; });
  }
};

inline double weighted_sum(view<double const> const& weights, view<double> const& values) {
  long double sum = 0;
  for_each_element(weights, [&](double w, std::int64_t const* i) {
    sum += static_cast<long double>(w) * static_cast<long double>(*values.at(i[0], i[1], i[2], i[3]));
  });
  return static_cast<double>(sum);
}

/// Σ cotangent · output of a scan.
template <any_rule Rule>
double scan_loss(scan_inputs<double> const& in, scan_cotangents<double> const& up) {
  dense_tensor out(in.v), variance(up.grad_out_variance), eta(up.grad_final_eta), evidence(up.grad_final_evidence);
  scan<Rule>(sequential{1}, in, {out.whole, variance.whole, eta.whole, evidence.whole}, allocate);
  return weighted_sum(up.grad_out, out.whole) + weighted_sum(up.grad_out_variance, variance.whole) +
         weighted_sum(up.grad_final_eta, eta.whole) + weighted_sum(up.grad_final_evidence, evidence.whole);
}

/// The tensor asked for, or the exception that says it is not there.
inline view<double const> tensor_to_vary(scan_inputs<double> const& in, scan_tensor which) {
  view<double const> const given = in.*input_of(which);
  if (!given.present()) throw argument_error(name_of(which), "a tensor to differentiate by", "absent");
  return given;
}

}  // namespace detail

/// ∂/∂`which` of Σ cotangent · output over scan<Rule>, by differences, row-major and dense.
///
/// @param in     the scan; the tensor asked for must be present (zeros for an initial state of zeros)
/// @param up     the cotangents, as scan_backward takes them
/// @param which  the tensor
/// @param step   h, relative to max(1, |x|); to x for the prior; absolute for log_decay. At -inf the derivative is 0.
///               Entries (i,j) and (j,i) of a full memory's evidence move together, and share the derivative.
/// @throws argument_error  as scan does, or if the tensor is absent
template <any_rule Rule>
std::vector<double> numerical_gradient(scan_inputs<double> in, scan_cotangents<double> const& up, scan_tensor which,
                                       double step = 1e-3) {
  view<double const> const given = detail::tensor_to_vary(in, which);
  detail::dense_tensor varied(given);
  varied.copy(given);
  in.*detail::input_of(which) = varied.whole;

  std::vector<double> gradient(varied.values.size());
  std::int64_t const K = in.k.extent[3];
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    std::size_t mirror = i;  // the entry across the diagonal
    if (Rule::keeps_full && which == scan_tensor::initial_evidence) {
      auto const n = static_cast<std::size_t>(K), inner = i % (n * n);
      mirror = i - inner + inner % n * n + inner / n;
    }
    double const x = varied.values[i];
    double const h = which == scan_tensor::log_decay ? step : step * (which == scan_tensor::prior ? x : (std::max)(1.0, std::fabs(x)));
    auto const at = [&](double shift) {
      varied.values[i] = varied.values[mirror] = x + shift * h;
      return detail::scan_loss<Rule>(in, up);
    };
    auto const one_sided = [&](double side) {
      return side * (25 * at(0) - 48 * at(-side) + 36 * at(-2 * side) - 16 * at(-3 * side) + 3 * at(-4 * side));
    };
    bool const floored = which == scan_tensor::beta || which == scan_tensor::initial_evidence;
    double const slope = which == scan_tensor::log_decay && x + 2 * h > 0 ? one_sided(1)
                         : floored && x - 2 * h < 0                       ? one_sided(-1)
                                                                          : 8 * (at(1) - at(-1)) - (at(2) - at(-2));
    varied.values[i] = varied.values[mirror] = x;
    gradient[i] = slope / (12 * h) / (mirror == i ? 1 : 2);
  }
  return gradient;
}

/// Holds scan_backward<Rule> against numerical_gradient<Rule> for one tensor.
/// @throws argument_error  as scan and scan_backward do, or if the tensor is absent
template <any_rule Rule>
gradient_comparison compare_gradient(scan_inputs<double> const& in, scan_cotangents<double> const& up, scan_tensor which,
                                     double step = 1e-3) {
  std::vector<double> const numerical = numerical_gradient<Rule>(in, up, which, step);
  detail::dense_tensor analytic(in.*detail::input_of(which));
  scan_gradients<double> down;
  down.*detail::gradient_of(which) = analytic.whole;
  scan_backward<Rule>(checkpointed{}, in, up, down, allocate);

  gradient_comparison result;
  double largest = 0, furthest = -1;
  for (std::size_t i = 0; i < numerical.size(); ++i) {
    double const gap = std::fabs(analytic.values[i] - numerical[i]);
    largest = (std::max)({largest, std::fabs(analytic.values[i]), std::fabs(numerical[i])});
    if (gap <= furthest) continue;  // a NaN is furthest of all
    furthest = gap;
    result.element = static_cast<std::int64_t>(i);
    result.analytic = analytic.values[i];
    result.numerical = numerical[i];
    if (gap != gap) break;
  }
  result.worst = numerical.empty() || furthest == 0 ? 0 : furthest / largest;
  return result;
}

/// The worst of compare_gradient over every tensor of `in` that is present.
template <any_rule Rule>
double worst_gradient_error(scan_inputs<double> const& in, scan_cotangents<double> const& up, double step = 1e-3) {
  double worst = 0;
  for (scan_tensor which : every_scan_tensor) {
    if (!(in.*detail::input_of(which)).present()) continue;
    double const error = compare_gradient<Rule>(in, up, which, step).worst;
    if (error != error) return error;
    worst = (std::max)(worst, error);
  }
  return worst;
}

}  // namespace palimpsa
