#pragma once
/// @file
/// Which usual mistake a kernel made, found by making it: the case is altered so that a right kernel would write what a wrong one
/// does with the case as it is, the reference runs that, and what it writes is held against what the wrong kernel wrote. A
/// mistake is named only where its prediction explains the error.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/bounds.hpp"
#include "palimpsa/io/case_call.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/run_options.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// Runs a case by one rule: run_case<Rule>, or the same on another device.
using case_runner = std::function<named_tensors(case_file const&, run_options const&)>;

/// A mistake as a change of the case.
struct usual_mistake {
  std::string_view sentence;                                  ///< what the kernel does
  std::function<bool(case_file&)> alter;                      ///< makes it; false where the case gives no occasion
  std::function<void(named_tensors&)> then = [](auto&) {};    ///< turns what was written into what the kernel would write
};

namespace detail {

using reals = case_tensor<double>;

inline std::int64_t tokens_of(reals const& x) { return x.shape[1]; }

/// Numbers of one token of a batch row.
inline std::size_t token_size(reals const& x) {
  std::size_t size = 1;
  for (std::size_t axis = 2; axis < x.shape.size(); ++axis) size *= static_cast<std::size_t>(x.shape[axis]);
  return size;
}

/// Every number of a tensor [B, T, HV, ...] with β of its token, head and channel.
template <class F> void each_with_beta(reals& x, reals const& beta, F f) {
  std::size_t const channels = x.shape.size() > 3 ? static_cast<std::size_t>(x.shape[3]) : 1;
  bool const wide = beta.shape.size() > 3;
  for (std::size_t i = 0; i < x.values.size(); ++i) f(x.values[i], beta.values[wide ? i : i / channels]);
}

/// log_decay of every token from the token `by` places on in the same batch row; 0 beyond its ends.
inline void move_gates(reals& gates, std::int64_t by) {
  auto const from = gates.values;
  auto const size = static_cast<std::int64_t>(token_size(gates)), T = tokens_of(gates);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(from.size()); ++i) {
    std::int64_t const t = i / size % T + by;
    gates.values[static_cast<std::size_t>(i)] = t < 0 || t >= T ? 0 : from[static_cast<std::size_t>(i + by * size)];
  }
}

/// log_decay as differences of a running sum, or as the running sum, within each batch row.
inline void sum_gates(reals& gates, bool differences) {
  auto const from = gates.values;
  auto const size = token_size(gates), T = static_cast<std::size_t>(tokens_of(gates));
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i / size % T == 0) continue;
    gates.values[i] = differences ? (std::min)(from[i] - from[i - size], 0.0) : gates.values[i - size] + from[i];
  }
}

/// Unit vectors along the last axis.
inline void normalise(reals& x) {
  auto const size = static_cast<std::size_t>(x.shape.back());
  for (std::size_t first = 0; size > 0 && first < x.values.size(); first += size) {
    double sum = 0;
    for (std::size_t i = first; i < first + size; ++i) sum += x.values[i] * x.values[i];
    for (std::size_t i = first; i < first + size && sum > 0; ++i) x.values[i] /= std::sqrt(sum);
  }
}

/// q or k for every value head, head h from key head h mod HK: interleaved groups where blocks of heads are meant.
inline void interleave_heads(reals& x, std::int64_t value_heads) {
  auto const from = x.values;
  auto const K = static_cast<std::size_t>(x.shape[3]), HK = static_cast<std::size_t>(x.shape[2]);
  auto const HV = static_cast<std::size_t>(value_heads), rows = from.size() / (std::max)(HK * K, std::size_t{1});
  x.values.resize(rows * HV * K);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t h = 0; h < HV; ++h)
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>((row * HK + h % HK) * K), K,
                  x.values.begin() + static_cast<std::ptrdiff_t>((row * HV + h) * K));
  x.shape[2] = value_heads;
}

/// Two tokens for each: x_t or a fill where `first` or `second` says so.
inline void double_tokens(case_file::reals& tensor, bool first, bool second, double fill = 0) {
  if (!tensor) return;
  auto const from = tensor->values;
  auto const size = token_size(*tensor);
  tensor->shape[1] *= 2;
  tensor->values.assign(2 * from.size(), fill);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t const place = i / size * 2 * size + i % size;
    if (first) tensor->values[place] = from[i];
    if (second) tensor->values[place + size] = from[i];
  }
}

/// Reads before it writes: a token becomes two, one that reads and writes nothing, one that writes.
inline bool read_first(case_file& x, bool after_the_gate) {
  if (!x.beta) {
    std::vector<std::int64_t> const shape{x.v->shape[0], x.v->shape[1], x.v->shape[2]};
    x.beta = reals{shape, std::vector<double>(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]), 1.0), dtype::f64};
  }
  double_tokens(x.q, true, true);
  double_tokens(x.k, true, true);
  double_tokens(x.v, false, true);
  double_tokens(x.beta, false, true);
  double_tokens(x.log_decay, after_the_gate, !after_the_gate);
  if (x.cu_seqlens)
    for (auto& boundary : x.cu_seqlens->values) boundary *= 2;
  return true;
}

inline void keep_first_of_two(named_tensors& all) {
  for (auto const name : {"out", "out_variance"}) {
    auto const found = all.find(name);
    if (found == all.end()) continue;
    auto& x = found->second;
    x.shape[1] /= 2;
    auto const size = token_size(x);
    for (std::size_t i = 0; i < x.values.size() / 2; ++i) x.values[i] = x.values[i / size * 2 * size + i % size];
    x.values.resize(x.values.size() / 2);
  }
}

inline bool transpose_states(case_file::reals& x) {
  if (!x || x->shape[2] != x->shape[3]) return false;
  auto const n = static_cast<std::size_t>(x->shape[2]);
  for (std::size_t first = 0; first < x->values.size(); first += n * n)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < i; ++j) std::swap(x->values[first + i * n + j], x->values[first + j * n + i]);
  return true;
}

/// Alters log_decay where there is one.
inline std::function<bool(case_file&)> gates(std::function<void(reals&)> alter) {
  return [=](case_file& x) {
    if (x.log_decay) alter(*x.log_decay);
    return x.log_decay.has_value();
  };
}

/// Alters v by β where there is one.
inline std::function<bool(case_file&)> values(std::function<void(double&, double)> alter) {
  return [=](case_file& x) {
    if (x.beta) each_with_beta(*x.v, *x.beta, alter);
    return x.beta.has_value();
  };
}

inline std::vector<usual_mistake> gate_mistakes() {
  return {{"log_decay is taken from the token before: the gate comes after the write", gates([](reals& x) { move_gates(x, -1); })},
          {"log_decay is taken from the next token", gates([](reals& x) { move_gates(x, 1); })},
          {"log_decay is not applied", gates([](reals& x) { std::fill(x.values.begin(), x.values.end(), 0.0); })},
          {"log_decay is summed over tokens twice", gates([](reals& x) { sum_gates(x, false); })},
          {"log_decay in the file is a running sum, of which the kernel takes differences", gates([](reals& x) { sum_gates(x, true); })},
          {"the gate is 2^log_decay: a power of 2 where one of e is meant",
           gates([](reals& x) { for (double& g : x.values) g *= std::log(2.0); })},
          {"the gate is applied twice", gates([](reals& x) { for (double& g : x.values) g *= 2; })}};
}

inline std::vector<usual_mistake> write_mistakes() {
  return {{"beta multiplies v once too often", values([](double& v, double beta) { v *= beta; })},
          {"beta does not multiply v: are the values weighted already?", values([](double& v, double beta) { v = beta != 0 ? v / beta : 0; })},
          {"beta is not applied",
           [](case_file& x) { return x.beta.has_value() && (x.beta.reset(), true); }},
          {"q and k are made unit vectors", [](case_file& x) { return normalise(*x.q), normalise(*x.k), true; }},
          {"k is made a unit vector", [](case_file& x) { return normalise(*x.k), true; }},
          {"q and k have changed places", [](case_file& x) { return std::swap(x.q, x.k), true; }},
          {"value head h reads key head h mod HK, where h / (HV/HK) is meant",
           [](case_file& x) {
             std::int64_t const heads = x.v->shape[2];
             if (heads == x.q->shape[2] || x.q->shape[2] == 1) return false;
             return interleave_heads(*x.q, heads), interleave_heads(*x.k, heads), true;
           }},
          {"the prior is 1, whatever the file says",
           [](case_file& x) {
             if (x.prior) std::fill(x.prior->values.begin(), x.prior->values.end(), 1.0);
             return x.prior.has_value();
           }}};
}

inline std::vector<usual_mistake> state_mistakes() {
  return {{"the state is read before the token is written", [](case_file& x) { return read_first(x, true); }, keep_first_of_two},
          {"the state is read before the token's gate and write", [](case_file& x) { return read_first(x, false); }, keep_first_of_two},
          {"the initial state is not taken",
           [](case_file& x) {
             bool const had = x.initial_eta || x.initial_evidence;
             return x.initial_eta.reset(), x.initial_evidence.reset(), had;
           }},
          {"the initial state is taken transposed",
           [](case_file& x) { return transpose_states(x.initial_eta) && (transpose_states(x.initial_evidence), true); }},
          {"cu_seqlens is not heeded: one sequence's memory runs into the next",
           [](case_file& x) {
             if (!x.cu_seqlens || x.initial_eta || x.initial_evidence) return false;
             return x.cu_seqlens.reset(), true;
           }}};
}

}  // namespace detail

/// The mistakes that are tried.
inline std::vector<usual_mistake> usual_mistakes() {
  auto all = detail::gate_mistakes();
  for (auto&& more : {detail::write_mistakes(), detail::state_mistakes()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// The mistake that explains a wrong tensor of the forward pass; empty if none does, or if trying would take long.
/// @param given the case as the kernel had it @param yours what it wrote under that name @param error of it @param bound it missed
inline std::string find_mistake(case_file const& given, case_runner const& reference, std::string_view name,
                                std::vector<double> const& yours, double error, double bound) {
  auto const& v = given.v->shape;
  double const work = static_cast<double>(given.v->values.size()) * static_cast<double>(given.q->shape[3]);
  if (is_right_value(name) && name.substr(0, 5) == "grad_") return {};
  if (!std::isfinite(error) || work > 0x1p28 || v[1] == 0) return {};
  case_file forward = given;
  for (auto const cotangent : cotangent_names) (forward.*member_named(cotangent)).reset();
  std::string best;
  double least = (std::min)(0.1 * error, (std::max)(2 * bound, 0.03 * error));
  for (auto const& mistake : usual_mistakes()) {
    case_file altered = forward;
    if (!mistake.alter(altered)) continue;
    try {
      auto written = reference(altered, {});
      mistake.then(written);
      auto const found = written.find(name);
      if (found == written.end() || found->second.values.size() != yours.size()) continue;
      double const left = distance_between(yours, found->second.values).relative;
      if (left < least) least = left, best = mistake.sentence;
    } catch (std::exception const&) {  // the altered case breaks the contract: nobody made this mistake
    }
  }
  return best;
}

}  // namespace palimpsa::io
