// palimpsa-verify as a person meets it: what it prints, the file it writes, and its exit code, from real, damaged, hostile and
// foreign files.

#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_builder.hpp"
#include "palimpsa/io/case_file.hpp"
#include "palimpsa/io/safetensors.hpp"
#include "palimpsa/io/verify.hpp"
#include "support/catch.hpp"
#include "verify/options.hpp"

#if defined(PALIMPSA_TEST_VERIFY)

namespace io = palimpsa::io;
using namespace test_io;

namespace {

/// What a run of the program gave.
struct outcome {
  int code = -1;  ///< exit code; -1 if it did not exit by itself
  std::string out, err;
};

std::string text_of(std::filesystem::path const& path) {
  auto const contents = slurp(path);
  return {reinterpret_cast<char const*>(contents.data()), contents.size()};
}

std::string quoted(std::string const& word) { return "'" + word + "'"; }  // no name here has a quote in it

outcome run(scratch_directory const& scratch, std::vector<std::string> const& arguments) {
  auto const out = scratch / "stdout", err = scratch / "stderr";
  std::string command = quoted(PALIMPSA_TEST_VERIFY);
  for (auto const& argument : arguments) command += " " + quoted(argument);
  command += " > " + quoted(out.string()) + " 2> " + quoted(err.string());
  int const status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(out), text_of(err)};
}

std::string shipped(std::string const& name) { return std::string(PALIMPSA_TEST_CASES) + "/" + name + ".safetensors"; }

std::string last_line(std::string const& text) {
  auto const end = text.find_last_not_of('\n');
  auto const begin = text.find_last_of('\n', end);
  return end == std::string::npos ? "" : text.substr(begin + 1, end - begin);
}

/// The lines that fail, without their case.
std::string failing(std::string const& text) {
  std::string names;
  std::size_t begin = 0;
  while (begin < text.size()) {
    auto const end = text.find('\n', begin);
    auto const line = text.substr(begin, end - begin);
    if (line.find("  FAIL") != std::string::npos) {
      auto const tensor = line.find_first_not_of(' ', line.find(' '));
      names += line.substr(tensor, line.find("  ", tensor) - tensor) + "\n";
    }
    begin = end + 1;
  }
  return names;
}

/// Writes the shipped case after a change to it.
template <class Change> std::string changed(scratch_directory const& scratch, std::string const& name, Change change) {
  auto contents = io::read(shipped(name));
  change(contents);
  auto const path = scratch / (name + ".safetensors");
  io::write(path, contents);
  return path.string();
}

void flip(io::tensor& tensor, std::size_t element, unsigned bit) {
  tensor.bytes[element * io::item_size(tensor.type) + bit / 8] ^= std::byte{1} << (bit % 8);
}

void store_as(io::tensor& tensor, io::dtype type, double factor) {
  auto values = io::to_doubles(tensor);
  for (double& x : values) x *= factor;
  tensor = io::make_tensor(type, tensor.shape, std::span<double const>(values));
}

}  // namespace

TEST_CASE("right files pass, and are told so in the last line", "[verify]") {
  scratch_directory const scratch;
  auto const result = run(scratch, {shipped("palimpsa_state"), shipped("mesa_net_state"), shipped("longhorn_state")});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(result.out.find("palimpsa_state  grad_log_decay [0,1)") != std::string::npos);
  CHECK(result.out.find("cond ") != std::string::npos);
  CHECK(failing(result.out).empty());
  CHECK(last_line(result.out).find(" passed, 0 failed, 0 skipped") != std::string::npos);
  auto const chunked = run(scratch, {"--path", "chunked", "--chunk=16", shipped("longhorn_state")});
  CHECK(chunked.code == 1);  // nothing compared is nothing passed
  CHECK(missing(chunked.err, {"longhorn_state", "nothing was compared: every tensor was skipped"}) == "");
  CHECK(chunked.out.find("skipped: no chunked form: ") != std::string::npos);
  CHECK(last_line(chunked.out) == "0 passed, 0 failed, 7 skipped");
}

TEST_CASE("one flipped bit of a right value fails its tensor and no other", "[verify]") {
  scratch_directory const scratch;
  for (auto const* name : {"out", "final_evidence", "grad_q", "grad_prior"}) {
    auto const file = changed(scratch, "palimpsa_state", [&](io::tensor_file& contents) {
      flip(contents.tensors.at(name), 1, 32);  // a part in 2^20 of the element
    });
    INFO(name);
    auto const result = run(scratch, {file});
    CHECK(result.code == 1);
    CHECK(failing(result.out) == std::string(name) + "\n");
    CHECK(last_line(result.out).find(", 1 failed, ") != std::string::npos);
    auto const rounded = run(scratch, {"--dtype=bf16", file});  // computed anew, yet seen
    CHECK(rounded.code == 1);
    CHECK(failing(rounded.out) == std::string(name) + "\n");
    CHECK(missing(rounded.out, {"worst: ", "yours ", " (the file's), right ", " (the float64 reference's)"}) == "");
  }
}

TEST_CASE("a gradient that is wrong for strong gates only is caught by its band", "[verify]") {
  scratch_directory const scratch;
  auto const file = changed(scratch, "palimpsa_gate_strong", [](io::tensor_file& contents) {
    auto const gates = io::to_doubles(contents.tensors.at("log_decay"));
    auto& tensor = contents.tensors.at("grad_log_decay");
    auto values = io::to_doubles(tensor);
    for (std::size_t i = 0; i < gates.size(); ++i) values[i] *= gates[i] < -16 ? 1.001 : 1;
    tensor = io::make_tensor(io::dtype::f64, tensor.shape, std::span<double const>(values));
  });
  auto const result = run(scratch, {"--dtype", "f32", file});
  CHECK(result.code == 1);
  CHECK(failing(result.out) == "grad_log_decay [16,64)\n");
}

TEST_CASE("what another program wrote is compared at the bound of its type", "[verify]") {
  scratch_directory const scratch;
  struct kernel {
    io::dtype type;
    double factor;
    int code;
  };
  for (auto const& one : {kernel{io::dtype::f32, 1, 0}, kernel{io::dtype::f32, 1 + 2e-5, 1}, kernel{io::dtype::bf16, 1, 0},
                          kernel{io::dtype::bf16, 1.01, 1}, kernel{io::dtype::f16, 1, 0}, kernel{io::dtype::f16, 1.002, 1}}) {
    auto const file = changed(scratch, "gated_delta_net_state", [&](io::tensor_file& contents) {
      store_as(contents.tensors.at("out"), one.type, one.factor);
    });
    auto const result = run(scratch, {file});
    INFO(io::name_of(one.type) << " x " << one.factor << "\n" << result.out);
    CHECK(result.code == one.code);
    CHECK(failing(result.out) == (one.code == 0 ? "" : "out\n"));
    CHECK(result.out.find("the file's " + std::string(io::name_of(one.type))) != std::string::npos);
  }
}

TEST_CASE("--write adds what is missing and keeps the rest", "[verify]") {
  scratch_directory const scratch;
  for (auto const* name : {"palimpsa_packed", "mesa_net_state", "delta_net_implicit_gain", "palimpsa_empty_sequences"}) {
    INFO(name);
    auto const original = io::read(shipped(name));
    auto const bare = changed(scratch, name, [](io::tensor_file& contents) {
      for (auto const right : io::right_value_names) contents.tensors.erase(std::string(right));
      contents.metadata["note"] = "kept";
      contents.tensors["mask"] = io::tensor{io::dtype::i64, {1}, std::vector<std::byte>(8, std::byte{7})};
    });
    auto const target = (scratch / "full.safetensors").string();
    auto const result = run(scratch, {"--write", target, bare});
    CHECK(result.code == 0);
    CHECK(result.out.find("skipped: no right value in the file") != std::string::npos);
    CHECK(missing(result.err, {"1 tensor is not of a case"}) == "");
    CHECK(missing(result.out, {"wrote " + target + ": added ", "out"}) == "");
    auto const full = io::read(target);
    CHECK(full.metadata.at("note") == "kept");
    CHECK(full.tensors.at("mask").bytes == std::vector<std::byte>(8, std::byte{7}));
    for (auto const& [tensor, given] : original.tensors) {
      INFO(tensor);
      REQUIRE(full.tensors.count(tensor) == 1);
      auto const& written = full.tensors.at(tensor);
      bool const right = std::find(io::right_value_names.begin(), io::right_value_names.end(), tensor) != io::right_value_names.end();
      if (!right) {
        CHECK(written == given);
      } else {
        CHECK(written.type == io::dtype::f64);
        CHECK(written.shape == given.shape);
      }
    }
    CHECK(run(scratch, {"--dtype", "f32", target}).code == 0);
    // In place, with nothing to add: the same file.
    auto const before = io::read(target);
    CHECK(run(scratch, {"--write", target, target}).code == 0);
    CHECK(io::read(target) == before);
  }
}

TEST_CASE("--write that cannot be done is told, and leaves nothing behind", "[verify]") {
  scratch_directory const scratch;
  auto const entries = [&] { return scratch.entries(); };
  run(scratch, {"--help"});
  auto const before = entries();
  for (auto const& target : {(scratch / "no folder/x").string(), (scratch / "").string(), std::string("/dev/null")}) {
    INFO(target);
    auto const result = run(scratch, {"--write", target, shipped("mamba2_basic")});
    CHECK(result.code == 2);
    CHECK(missing(result.err, {"palimpsa-verify: " + target}) == "");
    CHECK(entries() == before);
  }
  auto const two = run(scratch, {"--write", (scratch / "x").string(), shipped("mamba2_basic"), shipped("mamba2_state")});
  CHECK(two.code == 2);
  CHECK(missing(two.err, {"--write: expected one case file, given 2"}) == "");
}

TEST_CASE("a command line that is not understood is told, before anything is read", "[verify]") {
  scratch_directory const scratch;
  struct mistake {
    std::vector<std::string> arguments;
    std::string told;
  };
  auto const file = shipped("mamba2_basic");
  std::vector<mistake> const mistakes{
      {{}, "at least one case file"},
      {{"--dtype", "f32"}, "at least one case file"},
      {{"--dtype", "f8", file}, "--dtype: expected f64, f32, bf16 or f16, given 'f8'"},
      {{"--dtype=", file}, "--dtype: expected f64, f32, bf16 or f16, given ''"},
      {{"--path", "fast", file}, "--path: expected sequential, chunked or step, given 'fast'"},
      {{"--device", "gpu", file}, "--device: expected cpu or cuda, given 'gpu'"},
      {{"--device", "cuda", "--dtype", "f64", file}, "--dtype: expected f32, bf16 or f16 with --device cuda"},
      {{"--chunk", "0", file}, "--chunk: expected a number of tokens, at least 1, given '0'"},
      {{"--chunk", "-3", file}, "given '-3'"},
      {{"--chunk", "1e3", file}, "given '1e3'"},
      {{"--chunk", "99999999999999999999", file}, "given '99999999999999999999'"},
      {{file, "--chunk"}, "--chunk: expected a value, given none"},
      {{"--tolerance", "0", file}, "--tolerance: expected a relative error above 0, given '0'"},
      {{"--tolerance", "nan", file}, "given 'nan'"},
      {{"--tolerance=1e-3x", file}, "given '1e-3x'"},
      {{"--require", "output", file}, "given 'output': did you mean 'out'?"},
      {{"--require", "out,q", file}, "given 'q'"},
      {{"--require", "", file}, "given ''"},
      {{"--write", "", file}, "--write: expected the name of a file"},
      {{"--frobnicate", file}, "given '--frobnicate'"},
      {{"-x", file}, "given '-x'"}};
  for (auto const& one : mistakes) {
    auto const result = run(scratch, one.arguments);
    INFO(result.err);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(missing(result.err, {"palimpsa-verify: ", one.told, "--help"}) == "");
  }
  auto const help = run(scratch, {"--dtype", "f32", "--help"});
  CHECK(help.code == 0);
  CHECK(help.err.empty());
  CHECK(missing(help.out, {"--dtype", "--path", "--chunk", "--device", "--tolerance", "--require", "--json", "--write",
                           "--version", "2^-8", "Exit code"}) == "");
  auto const version = run(scratch, {"--version"});
  CHECK(version.code == 0);
  CHECK(version.out == "palimpsa-verify " + verify::version_text() + "\n");
  CHECK(run(scratch, {"--", shipped("mamba2_basic")}).code == 0);
}

TEST_CASE("a file that cannot be read costs the others nothing", "[verify]") {
  scratch_directory const scratch;
  auto const empty = (scratch / "empty").string(), folder = (scratch / "").string();
  spill(empty, {});
  auto const good = shipped("mamba2_basic");
  for (auto const& bad : {(scratch / "none").string(), empty, folder, std::string("/dev/null")}) {
    INFO(bad);
    auto const result = run(scratch, {good, bad, good});
    CHECK(result.code == 2);
    CHECK(missing(result.err, {"palimpsa-verify: " + bad + ": "}) == "");
    CHECK(last_line(result.out).find("16 passed, 0 failed") == 0);
  }
}

TEST_CASE("a case that breaks the contract is refused by name", "[verify]") {
  scratch_directory const scratch;
  auto const refused = [&](std::string const& name, auto change, std::vector<std::string> const& told) {
    auto const file = changed(scratch, name, change);
    auto const result = run(scratch, {file});
    INFO(result.err);
    CHECK(result.code == 2);
    CHECK(missing(result.err, told) == "");
    CHECK(last_line(result.out) == "0 passed, 0 failed, 0 skipped");
  };
  auto const reals = [](std::vector<std::int64_t> const& shape, std::vector<double> const& values) {
    return io::make_tensor(io::dtype::f32, shape, std::span<double const>(values));
  };
  refused("palimpsa_one_token", [&](auto& x) { x.tensors["prior"] = reals({2}, {1, 0}); }, {"prior[1]", "above 0", "given 0"});
  refused("palimpsa_one_token", [&](auto& x) { x.tensors.erase("prior"); }, {"prior", "given absent"});
  refused("delta_net_basic", [&](auto& x) { x.tensors["log_decay"] = reals({1, 33, 1}, std::vector<double>(33)); },
          {"log_decay", "absent, since this rule forgets nothing"});
  refused("mamba2_packed", [&](auto& x) {
    std::vector<std::int64_t> const ends{0, 30, 20, 70};
    x.tensors["cu_seqlens"] = io::make_tensor(io::dtype::i64, {4}, std::span<std::int64_t const>(ends));
  }, {"cu_seqlens[2]", "at least 30", "given 20"});
  refused("mamba2_basic", [&](auto& x) { x.tensors["cu_seqlens"] = io::tensor{io::dtype::i32, {0}, {}}; }, {"cu_seqlens"});
  refused("mamba2_basic", [&](auto& x) { x.metadata["rule"] = "mamba3"; }, {"'rule'", "'mamba3'"});
  refused("mamba2_basic", [&](auto& x) {  // a small file that asks for 2 TB of states
    x.tensors.clear();
    x.tensors["q"] = x.tensors["k"] = reals({1, 0, 1, 256}, {});
    x.tensors["v"] = reals({1, 0, 1'000'000'000, 256}, {});
  }, {"final_eta", "in proportion to the inputs"});
}

TEST_CASE("nothing compared is nothing passed", "[verify]") {
  scratch_directory const scratch;
  auto const misspelt = changed(scratch, "mamba2_basic", [](io::tensor_file& x) {
    x.tensors["output"] = x.tensors.at("out");
    x.tensors["flags"] = io::tensor{io::dtype::boolean, {2}, std::vector<std::byte>(2)};
    for (auto const right : io::right_value_names) x.tensors.erase(std::string(right));
  });
  auto result = run(scratch, {misspelt});
  CHECK(result.code == 1);
  CHECK(missing(result.err, {"nothing was compared", "its 'output' may be meant for 'out'", "did you mean 'out'?",
                             "1 tensor is not of a case"}) == "");
  result = run(scratch, {shipped("mamba2_state"), misspelt});  // one file that is compared does not vouch for another
  CHECK(result.code == 1);
  result = run(scratch, {"--require", "out,final_eta", shipped("mamba2_state")});
  CHECK(result.code == 0);
  result = run(scratch, {"--require", "out_variance", shipped("mamba2_state")});
  CHECK(result.code == 1);
  CHECK(failing(result.out) == "out_variance\n");
}

TEST_CASE("--write writes nothing when a comparison failed", "[verify]") {
  scratch_directory const scratch;
  auto const wrong = changed(scratch, "palimpsa_state", [](io::tensor_file& x) {
    flip(x.tensors.at("out"), 1, 40);
    x.tensors.erase("final_eta");
  });
  auto const target = (scratch / "full").string();
  auto const result = run(scratch, {"--write", target, wrong});
  CHECK(result.code == 1);
  CHECK(missing(result.err, {target, "not written, since a comparison failed"}) == "");
  CHECK(!std::filesystem::exists(target));
}

TEST_CASE("--json is one document that a program reads", "[verify]") {
  scratch_directory const scratch;
  auto const wrong = changed(scratch, "palimpsa_state", [](io::tensor_file& x) {
    auto& out = x.tensors.at("out");
    auto values = io::to_doubles(out);
    for (double& y : values) y *= 2;
    values[5] = std::numeric_limits<double>::quiet_NaN();
    out = io::make_tensor(io::dtype::f64, out.shape, std::span<double const>(values));
  });
  auto const result = run(scratch, {"--json", "--tolerance", "1e-3", wrong, shipped("mamba2_basic"), "none"});
  CHECK(result.code == 2);
  auto const document = nlohmann::json::parse(result.out);
  CHECK(document.at("format") == "palimpsa-verify-1");
  CHECK(document.at("version") == verify::version_text());
  CHECK(document.at("exit_code") == 2);
  CHECK(document.at("failed") == 1);
  CHECK(document.at("run").at("tolerance") == 1e-3);
  REQUIRE(document.at("files").size() == 3);
  auto const& out = document.at("files").at(0).at("tensors").at(0);
  CHECK(out.at("tensor") == "out");
  CHECK(out.at("verdict") == "failed");
  CHECK(out.at("yours") == "file");
  CHECK(out.at("error") == "inf");
  CHECK(out.at("worst").at("yours") == "nan");
  CHECK(out.at("worst").at("place").at("channel") == 5);
  CHECK(document.at("files").at(1).at("tensors").at(0).at("verdict") == "ok");
  CHECK(document.at("files").at(2).count("error") == 1);
}

TEST_CASE("a GPU that cannot be had is told, and nothing runs in its place", "[verify]") {
  scratch_directory const scratch;
  auto const result = run(scratch, {"--device", "cuda", shipped("mamba2_basic")});
  if (result.code == 0) SKIP("this program met a GPU");
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK(missing(result.err, {"palimpsa-verify: --device cuda: "}) == "");
}

TEST_CASE("damaged files end in 0, 1 or 2", "[verify]") {
  scratch_directory const scratch;
  auto const whole = slurp(shipped("palimpsa_one_token"));
  std::mt19937_64 random(7);
  int refused = 0, accepted = 0;
  for (int i = 0; i < 120; ++i) {
    auto damaged = whole;
    if (i % 3 == 0) damaged.resize(random() % whole.size());
    for (int n = 0; n < i % 4; ++n) {
      if (!damaged.empty()) damaged[random() % damaged.size()] ^= std::byte{1} << (random() % 8);
    }
    auto const file = scratch / "damaged";
    spill(file, damaged);
    char const* const types[] = {"f64", "f32", "bf16", "f16"};
    auto const result = run(scratch, {"--dtype", types[i % 4], file.string()});
    INFO("damage " << i << "\n" << result.err);
    CHECK(result.code >= 0);
    CHECK(result.code <= 2);
    CHECK((result.code == 2) == !result.err.empty());
    (result.code == 2 ? refused : accepted) += 1;
  }
  CHECK(refused > 30);
  CHECK(accepted > 30);
}

#else

TEST_CASE("palimpsa-verify is run", "[verify]") { SKIP("palimpsa-verify is not built"); }

#endif
