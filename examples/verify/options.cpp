#include "verify/options.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

namespace verify {

char const* const help_text =
    R"(palimpsa-verify [options] FILE.safetensors...

Reads case files, runs the rule that each names, forward, and backward where the file has a cotangent (grad_out,
grad_out_variance, grad_final_eta, grad_final_evidence), and holds every tensor to a bound from its right value.

  --dtype f64|f32|bf16|f16     type of q, k, v, out; default f64, on a GPU f32. Arithmetic is in float64 for f64, else in
                               float32. Inputs are rounded to these types. Where that changes any, the right values are
                               computed anew in float64 from the rounded ones, and the file's own are held against
                               float64 as well.
  --path sequential|chunked|step
                               forward pass: a scan token by token (default), a scan by chunks, or a call of step for
                               each token with its states in a pool. There is one backward pass, whatever the path.
  --chunk N                    tokens a chunk, and between the states that the backward pass keeps; default 64
  --device cpu|cuda            default cpu
  --write OUT.safetensors      writes FILE (one file) with the right values it lacks, in float64 by the sequential path
  --help                       prints this

One row a tensor: relative error |x - right| / |right| (2-norms), largest absolute error, bound of the relative error, verdict.
grad_log_decay also has a row for each band of gates, |log_decay| in [0,1), [1,4), [4,16), [16,64). The bounds, with n the
tokens of the longest sequence:

  float64                      1e-12, or 8 * 2^-52 * cond
  float32                      5e-7 * sqrt(n), at most 1e-5, or 8 * 2^-23 * cond
  16-bit storage               of out, grad_q, grad_k, grad_v: 2^-8 (bf16) or 2^-11 (f16) on top of that of float32

cond, where it is printed, is the condition of the linear systems on the way: of diag(prior) + J over tokens for MesaNet, of the
unit-triangular system over chunks for DeltaNets by chunks. The larger bound counts.

To check a kernel of your own: save q, k, v and the other inputs as your kernel reads them, and what it writes as out (and
final_eta, grad_q, ...) in the type it writes. A right value stored as F32, BF16 or F16 is held to the bound of a float32
kernel with that storage, where that is wider than the bound of --dtype; the default, f64, is the reference to hold it
against. A kernel that feeds 16-bit matrix units may miss a 16-bit bound by a factor of 2: the error is printed.

Exit code: 0 if no tensor fails, 1 if one does, 2 for a file that cannot be read, breaks the contract or cannot be
written, and for a command line that is not understood.
)";

namespace {

/// The index of a value among the choices of an option.
std::size_t chosen(std::string const& option, std::string const& value, std::vector<std::string> const& choices) {
  std::string list;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == value) return i;
    list += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  }
  throw usage_error(option + ": expected " + list + ", given '" + value + "'");
}

std::int64_t chunk_length(std::string const& value) {
  std::int64_t tokens = 0;
  auto const [end, error] = std::from_chars(value.data(), value.data() + value.size(), tokens);
  if (error != std::errc{} || end != value.data() + value.size() || tokens < 1) {
    throw usage_error("--chunk: expected a number of tokens, at least 1, given '" + value + "'");
  }
  return tokens;
}

/// The arguments with "--option=value" cut in two; what follows "--" is left alone.
std::vector<std::string> cut(std::vector<std::string> const& arguments) {
  std::vector<std::string> words;
  bool options_over = false;
  for (auto const& argument : arguments) {
    auto const sign = argument.find('=');
    options_over = options_over || argument == "--";
    if (options_over || argument.compare(0, 2, "--") != 0 || sign == std::string::npos) {
      words.push_back(argument);
    } else {
      words.push_back(argument.substr(0, sign));
      words.push_back(argument.substr(sign + 1));
    }
  }
  return words;
}

void set(options& result, std::string const& option, std::string const& value, bool& typed) {
  using palimpsa::io::dtype;
  using palimpsa::io::scan_path;
  if (option == "--dtype") {
    constexpr dtype types[] = {dtype::f64, dtype::f32, dtype::bf16, dtype::f16};
    result.how.type = types[chosen(option, value, {"f64", "f32", "bf16", "f16"})];
    typed = true;
  } else if (option == "--path") {
    constexpr scan_path paths[] = {scan_path::sequential, scan_path::chunked, scan_path::step};
    result.how.path = paths[chosen(option, value, {"sequential", "chunked", "step"})];
  } else if (option == "--chunk") {
    result.how.chunk = chunk_length(value);
  } else if (option == "--device") {
    result.on_gpu = chosen(option, value, {"cpu", "cuda"}) == 1;
  } else if (value.empty()) {
    throw usage_error("--write: expected the name of a file, given ''");
  } else {
    result.write = value;
  }
}

void check(options const& result) {
  if (result.on_gpu && result.how.type == palimpsa::io::dtype::f64) {
    throw usage_error("--dtype: expected f32, bf16 or f16 with --device cuda, whose arithmetic is in float32, given 'f64'");
  }
  if (result.files.empty()) throw usage_error("expected at least one case file, given none");
  if (result.write && result.files.size() > 1) {
    throw usage_error("--write: expected one case file, given " + std::to_string(result.files.size()));
  }
}

}  // namespace

options parse_options(std::vector<std::string> const& arguments) {
  options result;
  bool typed = false, options_over = false;
  auto const words = cut(arguments);
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto const& word = words[i];
    if (options_over || word.compare(0, 1, "-") != 0) {
      result.files.push_back(word);
    } else if (word == "--") {
      options_over = true;
    } else if (word == "--help" || word == "-h") {
      result.help = true;
      return result;
    } else if (word == "--dtype" || word == "--path" || word == "--chunk" || word == "--device" || word == "--write") {
      if (i + 1 == words.size()) throw usage_error(word + ": expected a value, given none");
      set(result, word, words[++i], typed);
    } else {
      throw usage_error("expected an option that --help lists, given '" + word + "'");
    }
  }
  if (result.on_gpu && !typed) result.how.type = palimpsa::io::dtype::f32;
  check(result);
  return result;
}

}  // namespace verify
