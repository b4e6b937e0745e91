// Case files: the fields that are there arrive under their names, and what is missing or senseless is named.

#include <clocale>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/file_builder.hpp"
#include "palimpsa/io/case_file.hpp"
#include "palimpsa/io/safetensors.hpp"
#include "support/catch.hpp"

namespace io = palimpsa::io;
using namespace test_io;

namespace {

io::tensor reals(std::vector<std::int64_t> shape, io::dtype type = io::dtype::f32) {
  std::vector<double> values(static_cast<std::size_t>(*io::byte_count(type, shape)) / io::item_size(type));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.5 * static_cast<double>(i);
  return io::make_tensor(type, shape, std::span<double const>(values));
}

io::tensor integers(std::vector<std::int64_t> const& values, io::dtype type) {
  return io::make_tensor(type, {static_cast<std::int64_t>(values.size())}, std::span<std::int64_t const>(values));
}

io::tensor_file smallest_case() {
  return {{{"format", "palimpsa-case-1"},
           {"case", "small"},
           {"rule", "delta_net"},
           {"scale", "0.25"},
           {"value_weighting", "preweighted"},
           {"gain", "implicit"}},
          {{"q", reals({1, 2, 1, 3})}, {"k", reals({1, 2, 1, 3})}, {"v", reals({1, 2, 1, 2})}}};
}

std::string refusal(io::tensor_file const& contents) {
  return error_of([&] { io::to_case(contents, "f"); });
}

std::string refusal_with(std::string const& field, std::optional<std::string> const& value) {
  auto contents = smallest_case();
  contents.metadata.erase(field);
  if (value) contents.metadata[field] = *value;
  return refusal(contents);
}

}  // namespace

TEST_CASE("the smallest case holds what it says", "[io]") {
  auto const read = io::to_case(smallest_case(), "f");
  CHECK(read.name == "small");
  CHECK(read.rule == "delta_net");
  CHECK(read.scale == 0.25);
  CHECK(read.weighting == io::value_weighting::preweighted);
  CHECK(read.gain == io::delta_gain::exact);
  REQUIRE((read.q && read.k && read.v));
  CHECK(read.v->shape == std::vector<std::int64_t>{1, 2, 1, 2});
  CHECK(read.v->values == std::vector<double>{0, 0.5, 1, 1.5});
  CHECK(read.v->stored == io::dtype::f32);
  CHECK(!read.beta);
  CHECK(!read.cu_seqlens);
  CHECK(!read.out);
  CHECK(read.unknown.empty());
}

TEST_CASE("every tensor arrives under its own name", "[io]") {
  // A value of its own for each name: a field wired to another's member shows.
  std::map<std::string, double> marks;
  auto contents = smallest_case();
  for (auto const& field : io::case_fields) {
    double const mark = 1 + static_cast<double>(marks.size());
    marks[std::string(field.name)] = mark;
    std::vector<double> const values{mark};
    contents.tensors[std::string(field.name)] = io::make_tensor(
        io::dtype::f64, std::vector<std::int64_t>(field.smallest_rank, 1), std::span<double const>(values));
  }
  auto const read = io::to_case(contents, "f");
  auto const holds = [&](char const* name, io::case_file::reals const& member) {
    INFO(name);
    REQUIRE(member);
    CHECK(member->values == std::vector<double>{marks.at(name)});
  };
  holds("q", read.q), holds("k", read.k), holds("v", read.v), holds("beta", read.beta);
  holds("log_decay", read.log_decay), holds("prior", read.prior);
  holds("initial_eta", read.initial_eta), holds("initial_evidence", read.initial_evidence);
  holds("out", read.out), holds("out_variance", read.out_variance);
  holds("final_eta", read.final_eta), holds("final_evidence", read.final_evidence);
  holds("grad_out", read.grad_out), holds("grad_out_variance", read.grad_out_variance);
  holds("grad_final_eta", read.grad_final_eta), holds("grad_final_evidence", read.grad_final_evidence);
  holds("grad_q", read.grad_q), holds("grad_k", read.grad_k), holds("grad_v", read.grad_v);
  holds("grad_beta", read.grad_beta), holds("grad_log_decay", read.grad_log_decay),
      holds("grad_prior", read.grad_prior);
  holds("grad_initial_eta", read.grad_initial_eta), holds("grad_initial_evidence", read.grad_initial_evidence);
  CHECK(marks.size() == 24);
}

TEST_CASE("inputs come in every float type, lengths in both integer types", "[io]") {
  for (auto const type : {io::dtype::f64, io::dtype::f32, io::dtype::bf16, io::dtype::f16}) {
    auto contents = smallest_case();
    contents.tensors["q"] = reals({1, 2, 1, 3}, type);
    auto const read = io::to_case(contents, "f");
    CHECK(read.q->values == std::vector<double>{0, 0.5, 1, 1.5, 2, 2.5});
    CHECK(read.q->stored == type);
  }
  for (auto const type : {io::dtype::i32, io::dtype::i64}) {
    auto contents = smallest_case();
    contents.tensors["cu_seqlens"] = integers({0, 1, 2}, type);
    CHECK(io::to_case(contents, "f").cu_seqlens->values == std::vector<std::int64_t>{0, 1, 2});
  }
}

TEST_CASE("metadata that are absent or senseless are named", "[io]") {
  using strings = std::vector<std::string>;
  CHECK(missing(refusal_with("format", {}), strings{"f: metadata 'format'", "palimpsa-case-1", "no such field"}) == "");
  CHECK(missing(refusal_with("format", "pt"), strings{"metadata 'format'", "palimpsa-case-1", "'pt'"}) == "");
  CHECK(missing(refusal_with("rule", {}), strings{"metadata 'rule'", "no such field"}) == "");
  CHECK(missing(refusal_with("rule", "Palimpsa"),
                strings{"palimpsa, mamba2, longhorn, delta_net, gated_delta_net, mesa_net or diagonal_kalman",
                        "given 'Palimpsa'"}) == "");
  CHECK(missing(refusal_with("value_weighting", {}), strings{"'value_weighting'", "likelihood or preweighted"}) == "");
  CHECK(missing(refusal_with("value_weighting", "both"), strings{"likelihood or preweighted", "'both'"}) == "");
  CHECK(missing(refusal_with("gain", {}), strings{"'gain'", "explicit or implicit", "no such field"}) == "");
  CHECK(missing(refusal_with("gain", "plain"), strings{"'gain'", "explicit or implicit", "'plain'"}) == "");
  CHECK(missing(refusal_with("scale", {}), strings{"metadata 'scale'", "no such field"}) == "");
  for (auto const* scale : {"", " 1", "1 ", "+1", "1,5", "0x10", "1e999", "-1e999", "1e-999", "inf", "nan", "one",
                            "1.0f", "1..5", "\x1b[2J"}) {
    INFO(scale);
    CHECK(missing(refusal_with("scale", scale), strings{"metadata 'scale'", "finite decimal number"}) == "");
  }
  auto contents = smallest_case();
  contents.metadata["scale"] += std::string(1, '\0');
  CHECK(missing(refusal(contents), strings{"finite decimal number", "\\x00"}) == "");
}

TEST_CASE("a scale is read to the last bit, in any locale", "[io]") {
  auto const scale_of = [](std::string const& text) {
    auto contents = smallest_case();
    contents.metadata["scale"] = text;
    return io::to_case(contents, "f").scale;
  };
  std::string const before = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // a comma for the decimal point, where that locale is installed
  CHECK(scale_of("0.08838834764831845") == 0.08838834764831845);
  CHECK(scale_of("1e-05") == 1e-5);
  CHECK(scale_of("-2") == -2);
  CHECK(scale_of("0") == 0);
  std::setlocale(LC_ALL, before.c_str());
}

TEST_CASE("gain is asked of the DeltaNets only, name of nobody", "[io]") {
  auto contents = smallest_case();
  contents.metadata["rule"] = "mamba2";
  contents.metadata.erase("gain");
  contents.metadata.erase("case");
  auto const read = io::to_case(contents, "folder/file.safetensors");
  CHECK(!read.gain);
  CHECK(read.name == "file");
}

TEST_CASE("a program may bring a rule of its own", "[io]") {
  std::vector<std::string_view> const rules{"mine"};
  auto contents = smallest_case();
  contents.metadata["rule"] = "mine";
  CHECK(io::to_case(contents, "f", rules).rule == "mine");
  contents.metadata["rule"] = "palimpsa";
  auto const error = error_of([&] { io::to_case(contents, "f", rules); });
  CHECK(missing(error, {"metadata 'rule'", "expected mine", "'palimpsa'"}) == "");
}

TEST_CASE("tensors that are absent or of the wrong kind are named", "[io]") {
  for (auto const* name : {"q", "k", "v"}) {
    auto contents = smallest_case();
    contents.tensors.erase(name);
    CHECK(missing(refusal(contents), {"tensor '" + std::string(name) + "'", "to be there"}) == "");
  }
  auto const with = [](std::string const& name, io::tensor const& tensor) {
    auto contents = smallest_case();
    contents.tensors[name] = tensor;
    return refusal(contents);
  };
  CHECK(missing(with("q", integers({1}, io::dtype::i32)), {"tensor 'q': dtype", "BF16", "given I32"}) == "");
  CHECK(missing(with("cu_seqlens", reals({2})), {"tensor 'cu_seqlens': dtype", "I32 or I64", "given F32"}) == "");
  CHECK(missing(with("v", reals({4, 2})), {"tensor 'v': shape", "[B, T, HV, V]", "given [4, 2]"}) == "");
  CHECK(missing(with("v", reals({})), {"tensor 'v': shape", "given []"}) == "");
  CHECK(missing(with("prior", reals({})), {"tensor 'prior': shape", "[HV] or [HV, K]", "given []"}) == "");
  CHECK(missing(with("beta", reals({1, 1, 1, 1, 1})), {"tensor 'beta': shape", "given [1, 1, 1, 1, 1]"}) == "");
  auto square = integers({0, 1, 2, 3}, io::dtype::i64);
  square.shape = {2, 2};
  CHECK(missing(with("cu_seqlens", square), {"tensor 'cu_seqlens': shape", "[N + 1]", "given [2, 2]"}) == "");
}

TEST_CASE("a right value or cotangent of the wrong kind is refused alone", "[io]") {
  auto contents = smallest_case();
  contents.tensors["out"] = integers({1, 2}, io::dtype::i32);
  contents.tensors["grad_out"] = reals({4, 2});
  auto const read = io::to_case(contents, "f");
  CHECK(!read.out);
  REQUIRE(read.refused.size() == 2);
  CHECK(read.refused[0].name == "grad_out");
  CHECK(read.refused[0].why == "shape: expected [B, T, HV, V], given [4, 2]");
  CHECK(read.refused[1].why == "dtype: expected F64, F32, BF16 or F16, given I32");
}

TEST_CASE("the repr of a NumPy scalar is a number, of its own type", "[io]") {
  auto const scale_of = [](std::string const& text) {
    auto contents = smallest_case();
    contents.metadata["scale"] = text;
    return io::to_case(contents, "f").scale;
  };
  CHECK(scale_of("np.float64(0.14)") == 0.14);
  CHECK(scale_of("np.float32(0.14)") == static_cast<double>(0.14f));
  CHECK(scale_of("numpy.float32(1e-05)") == static_cast<double>(1e-5f));
  CHECK(scale_of("np.float16(0.125)") == 0.125);
  CHECK(scale_of("np.int64(2)") == 2);
  for (auto const* text : {"np.float32(0.14", "np.float32()", "np.float8(1)", "float32(1)", "np.float32(1))", "np.float32(inf)"})
    CHECK(missing(refusal_with("scale", text), {"finite decimal number", text}) == "");
}

TEST_CASE("other tensors are kept aside and told", "[io]") {
  auto contents = smallest_case();
  contents.tensors["attention_mask"] = integers({1, 1}, io::dtype::i64);
  contents.tensors["Q\x1b"] = reals({1});
  CHECK(io::to_case(contents, "f").unknown == std::vector<std::string>{"Q\\x1b", "attention_mask"});
}

TEST_CASE("the case files that ship are read in full", "[io]") {
  auto const paths = case_paths();
  CHECK(paths.size() >= 58);
  std::set<std::string> rules;
  for (auto const& path : paths) {
    INFO(path.string());
    auto const read = io::read_case(path);
    CHECK(read.name == path.stem().string());
    CHECK(read.unknown.empty());
    CHECK(read.out);
    for (auto const& field : io::case_fields) {
      auto const& member = read.*(field.member);
      if (!member) continue;
      std::size_t count = 1;
      for (auto const extent : member->shape) count *= static_cast<std::size_t>(extent);
      CHECK(member->values.size() == count);
    }
    rules.insert(read.rule);
  }
  CHECK(rules.size() == 7);
}
