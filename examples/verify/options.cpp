#include "verify/options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/nearest_name.hpp"

namespace verify {

char const* const help_text =
    R"(palimpsa-verify [options] FILE.safetensors...

Reads case files, runs the rule that each names, forward, and backward where the file has a cotangent (grad_out,
grad_out_variance, grad_final_eta, grad_final_evidence), and holds every tensor to a bound from its right value. By itself
(--dtype f64, sequential) the run is the float64 reference, and the file is on trial: "yours" is the file's value, "right" is
the reference's.

  --dtype f64|f32|bf16|f16     type of q, k, v, out; default f64, on a GPU f32. Arithmetic is in float64 for f64, else in
                               float32. Inputs are rounded to these types. Where that changes any, the right values are
                               computed anew in float64 from the rounded ones. With another type than f64, or another
                               path or device, this run of the library is on trial too: a row tells of the one that fails.
  --path sequential|chunked|step
                               forward pass: a scan token by token (default), a scan by chunks, or a call of step for
                               each token with its states in a pool. There is one backward pass, whatever the path.
  --chunk N                    tokens a chunk, and between the states that the backward pass keeps; default 64
  --device cpu|cuda            default cpu
  --tolerance X                holds every relative error to X in place of the bounds below; each row says so
  --require NAME,NAME...       tensors that have to be compared in every file: one that is not fails
  --json                       prints one JSON document in place of the table
  --write OUT.safetensors      writes FILE (one file) with the right values it lacks, in float64 by the sequential path;
                               nothing where a comparison failed
  --version, --help            print the version, this

One row a tensor: relative error |yours - right| / |right| (2-norms), the head or sequence that is nearest its bound with its own
relative error, largest absolute error, bound, verdict. Each head and each sequence is held to the bound on its own norm, where
that is above 2^-20 of the largest. grad_log_decay also has a row for each band of gates, |log_decay| in [0,1), [1,4), [4,16),
[16,64). Below a row that fails stand its worst element and, where one fits, the usual mistake that would give such values.
Nothing compared is nothing passed: a file without a right value fails. The bounds, with n the tokens of the longest sequence:

  float64                      1e-12, or 8 * 2^-52 * cond
  float32                      5e-7 * sqrt(n), at most 1e-5, or 8 * 2^-23 * cond
  16-bit storage               of out, grad_q, grad_k, grad_v: 2^-8 (bf16) or 2^-11 (f16) on top of that of float32, and
                               half a step among the type's denormals for every element

cond, where it is printed, is the condition, estimated, of the linear systems on the way: of diag(prior) + J over tokens for
MesaNet, of the unit-triangular system over chunks for DeltaNets by chunks; for out of one or two tokens, of the sums that reads
are. The larger bound counts.

To check a kernel of your own: save q, k, v and the other inputs as your kernel reads them, and what it writes as out (and
final_eta, grad_q, ...) in the type it writes. A value stored as F32, BF16 or F16 is held to the bound of a float32 kernel
with that storage, or to that of --dtype where it is wider. A kernel that feeds 16-bit matrix units may miss a 16-bit bound by
a factor of 2: the error is printed, and --tolerance is there.

Exit code: 0 if something was compared and nothing failed; 1 if a tensor failed, a required one was not compared, or nothing
was compared; 2 for a file that cannot be read, breaks the contract or cannot be written, and for a command line that is not
understood.
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

double tolerance_of(std::string const& value) {
  double x = 0;
  auto const [end, error] = std::from_chars(value.data(), value.data() + value.size(), x);
  if (error != std::errc{} || end != value.data() + value.size() || !(x > 0) || !std::isfinite(x)) {
    throw usage_error("--tolerance: expected a relative error above 0, given '" + value + "'");
  }
  return x;
}

/// "out,final_eta" as names of what is compared.
std::vector<std::string> required_names(std::string const& value) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= value.size();) {
    auto const end = (std::min)(value.find(',', begin), value.size());
    auto const name = value.substr(begin, end - begin);
    if (!palimpsa::io::is_right_value(name)) {
      auto const near = palimpsa::io::nearest_name(name);
      throw usage_error("--require: expected names of what a rule writes (out, final_eta, grad_q, ...), given '" + name + "'" +
                        (near.empty() ? "" : ": did you mean '" + std::string(near) + "'?"));
    }
    names.push_back(name);
    begin = end + 1;
  }
  return names;
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
  } else if (option == "--tolerance") {
    result.how.tolerance = tolerance_of(value);
  } else if (option == "--require") {
    result.required = required_names(value);
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
  constexpr std::string_view with_value[] = {"--dtype", "--path", "--chunk", "--device", "--tolerance", "--require", "--write"};
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
    } else if (word == "--version") {
      result.version = true;
      return result;
    } else if (word == "--json") {
      result.json = true;
    } else if (std::find(std::begin(with_value), std::end(with_value), word) != std::end(with_value)) {
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
