// Reading and writing safetensors: what is right is read exactly, what is wrong is refused in a sentence that names it.

#include <csignal>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>

#include "io/file_builder.hpp"
#include "palimpsa/io/safetensors.hpp"
#include "support/catch.hpp"

namespace io = palimpsa::io;
using namespace test_io;

namespace {

io::tensor_file parse(bytes const& contents) { return io::parse(contents, "f"); }

struct refused {
  bytes contents;
  std::vector<std::string> fragments;  // of the error's text
};

void check_all_refused(std::vector<refused> const& files) {
  for (auto const& [contents, fragments] : files) {
    auto const& text = contents;
    std::string const error = error_of([&] { parse(text); });
    INFO(std::string(reinterpret_cast<char const*>(text.data()), (std::min)(text.size(), std::size_t{200})));
    CHECK(error.rfind("f: ", 0) == 0);
    CHECK(missing(error, fragments) == "");
  }
}

/// A header with one tensor t of the given fields, and `size` bytes of data.
bytes one_tensor(std::string const& fields, std::size_t size) {
  return file_of("{\"t\":{" + fields + "}}", bytes(size));
}

io::tensor some_tensor(io::dtype type, std::vector<std::int64_t> shape) {
  auto const size = io::byte_count(type, shape);
  io::tensor result{type, shape, bytes(static_cast<std::size_t>(*size))};
  for (std::size_t i = 0; i < result.bytes.size(); ++i) result.bytes[i] = static_cast<std::byte>(37 * i + 11);
  return result;
}

}  // namespace

TEST_CASE("a file made by hand is read byte for byte", "[io]") {
  auto const file = parse(file_of(
      R"({"b":{"dtype":"I32","shape":[2],"data_offsets":[4,12]},)"
      R"("__metadata__":{"format":"x","\u00e9":""},)"
      R"("a":{"data_offsets":[0,4],"shape":[1,1],"dtype":"F32"},)"
      R"("none":{"dtype":"F64","shape":[3,0],"data_offsets":[12,12]},)"
      R"("scalar":{"dtype":"F16","shape":[],"data_offsets":[12,14]}}   )",
      little_endian(0x40200000, 4) + little_endian(7, 4) + little_endian(0xFFFFFFFE, 4) + little_endian(0x3C00, 2)));
  CHECK(file.metadata == io::metadata_map{{"format", "x"}, {"\xc3\xa9", ""}});
  REQUIRE(file.tensors.size() == 4);
  CHECK(io::to_doubles(file.tensors.at("a")) == std::vector<double>{2.5});
  CHECK(file.tensors.at("a").shape == std::vector<std::int64_t>{1, 1});
  CHECK(io::to_integers(file.tensors.at("b")) == std::vector<std::int64_t>{7, -2});
  CHECK(file.tensors.at("none").bytes.empty());
  CHECK(file.tensors.at("none").shape == std::vector<std::int64_t>{3, 0});
  CHECK(io::to_doubles(file.tensors.at("scalar")) == std::vector<double>{1});
}

TEST_CASE("an empty header is a file without tensors", "[io]") {
  CHECK(parse(file_of("{}")) == io::tensor_file{});
  CHECK(parse(file_of("{\"__metadata__\":{}}")) == io::tensor_file{});
}

TEST_CASE("a wrong header length is refused", "[io]") {
  check_all_refused({
      {{}, {"at least the 8 bytes", "given 0 bytes"}},
      {bytes(7), {"at least the 8 bytes", "given 7 bytes"}},
      {bytes(8), {"JSON object"}},
      {little_endian(3) + to_bytes("{}"), {"header length", "at most the 2 bytes", "given 3"}},
      {little_endian(100'000'001) + to_bytes("{}"), {"header length", "100000000", "given 100000001"}},
      {little_endian(~std::uint64_t{0}) + to_bytes("{}"), {"header length", "given 18446744073709551615"}},
      {little_endian(~std::uint64_t{7}) + to_bytes("{}"), {"header length"}},
  });
}

TEST_CASE("a header that is no JSON of the right form is refused", "[io]") {
  check_all_refused({
      {file_of(""), {"JSON object", "given ''"}},
      {file_of(" {}"), {"starts with '{'"}},
      {file_of("\xef\xbb\xbf{}"), {"starts with '{'", "\\xef"}},
      {file_of("[]"), {"JSON object", "given '[]'"}},
      {file_of("null"), {"JSON object"}},
      {file_of("{"), {"expected JSON", "at byte 2"}},
      {file_of("{}{}"), {"expected JSON"}},
      {file_of("{},"), {"expected JSON"}},
      {file_of(std::string_view("{}\0{}", 5)), {"zero byte at byte 2"}},
      {file_of("{\"a\xff\":{}}"), {"expected JSON", "UTF-8"}},
      {file_of("{\"a\xed\xa0\x80\":{}}"), {"expected JSON", "UTF-8"}},
      {file_of(R"({"\ud800":{}})"), {"expected JSON", "surrogate"}},
      {file_of("{\"a\nb\":{}}"), {"expected JSON"}},
      {file_of("{\"a\":1e999}"), {"expected JSON"}},
      {file_of("{\"a\":NaN}"), {"expected JSON"}},
      {file_of("{/**/}"), {"expected JSON"}},
      {file_of("{\"a\":5}"), {"tensor 'a'", "expected an object", "given 5"}},
      {file_of("{\"a\":[]}"), {"tensor 'a'", "expected an object", "given an array"}},
      {file_of("{\"a\":null}"), {"tensor 'a'", "expected an object", "given null"}},
      {file_of("{\"__metadata__\":null}"), {"f: __metadata__", "expected an object", "given null"}},
      {file_of("{\"__metadata__\":{\"k\":1}}"), {"__metadata__: k", "expected a string", "given 1"}},
      {file_of("{\"__metadata__\":{\"k\":{}}}"), {"__metadata__: k", "expected a string", "given an object"}},
      {file_of("{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}"), {"__metadata__", "each field once", "'k' twice"}},
      {file_of("{\"__metadata__\":{},\"__metadata__\":{}}"), {"each name once", "'__metadata__' twice"}},
  });
}

TEST_CASE("deep nests end at the first bracket that does not belong", "[io]") {
  std::size_t const depth = 5'000'000;  // a recursive parser, or destructor, needs some 100 bytes of stack for each
  std::string const arrays(depth, '[');
  std::string objects = "{\"a\":";
  for (std::size_t i = 0; i < depth; ++i) objects += "{\"a\":";
  check_all_refused({
      {file_of(arrays), {"JSON object"}},
      {file_of("{\"a\":" + arrays), {"tensor 'a'", "given an array"}},
      {file_of("{\"__metadata__\":{\"a\":" + arrays), {"given an array"}},
      {file_of("{\"a\":{\"shape\":" + arrays), {"tensor 'a': shape", "given an array"}},
      {file_of(objects), {"tensor 'a'", "the fields dtype, shape and data_offsets", "given 'a'"}},
  });
}

TEST_CASE("wrong fields of a tensor are refused", "[io]") {
  std::string const dtype = R"("dtype":"F32")", shape = R"("shape":[2])", offsets = R"("data_offsets":[0,8])";
  check_all_refused({
      {one_tensor(shape + "," + offsets, 8), {"tensor 't'", "expected the field dtype", "given none"}},
      {one_tensor(dtype + "," + offsets, 8), {"tensor 't'", "expected the field shape", "given none"}},
      {one_tensor(dtype + "," + shape, 8), {"tensor 't'", "expected the field data_offsets", "given none"}},
      {one_tensor(dtype + "," + dtype, 8), {"tensor 't'", "each field once", "'dtype' twice"}},
      {one_tensor(shape + "," + shape, 8), {"tensor 't'", "each field once", "'shape' twice"}},
      {one_tensor(offsets + "," + offsets, 8), {"tensor 't'", "each field once", "'data_offsets' twice"}},
      {one_tensor(dtype + ",\"strides\":[1]", 8), {"tensor 't'", "given 'strides'"}},
      {one_tensor(R"("dtype":4)", 8), {"tensor 't': dtype", "expected a string", "given 4"}},
      {one_tensor(R"("dtype":["F32"])", 8), {"tensor 't': dtype", "expected a string", "given an array"}},
      {one_tensor(R"("shape":8)", 8), {"tensor 't': shape", "expected an array", "given 8"}},
      {one_tensor(R"("shape":"8")", 8), {"tensor 't': shape", "expected an array", "given the string '8'"}},
      {one_tensor(R"("shape":{})", 8), {"tensor 't': shape", "expected an array", "given an object"}},
      {one_tensor(R"("shape":[-1])", 8), {"tensor 't': shape", "expected extents", "given -1"}},
      {one_tensor(R"("shape":[2.0])", 8), {"tensor 't': shape", "expected extents", "given 2.0"}},
      {one_tensor(R"("shape":["2"])", 8), {"tensor 't': shape", "expected extents", "given the string '2'"}},
      {one_tensor(R"("shape":[true])", 8), {"tensor 't': shape", "expected extents", "given a boolean"}},
      {one_tensor(R"("shape":[null])", 8), {"tensor 't': shape", "expected extents", "given null"}},
      {one_tensor(R"("shape":[9223372036854775808])", 8), {"tensor 't': shape", "given 9223372036854775808"}},
      {one_tensor(R"("shape":[18446744073709551618])", 8), {"tensor 't': shape", "given 18446744073709551618"}},
      {one_tensor(R"("data_offsets":[0])", 8), {"tensor 't'"}},
      {one_tensor(dtype + "," + shape + R"(,"data_offsets":[8])", 8), {"data_offsets", "two offsets", "given 1"}},
      {one_tensor(R"("data_offsets":[0,8,8])", 8), {"tensor 't': data_offsets", "two offsets", "given 8"}},
      {one_tensor(R"("data_offsets":[-8,0])", 8), {"tensor 't': data_offsets", "two offsets", "given -8"}},
      {one_tensor(R"("data_offsets":[0,8.5])", 8), {"tensor 't': data_offsets", "two offsets", "given 8.5"}},
      {one_tensor(R"("data_offsets":[0,18446744073709551616])", 8), {"data_offsets", "given 18446744073709551616"}},
  });
}

TEST_CASE("offsets that do not fit shape, type or file are refused", "[io]") {
  auto const tensor = [](std::string const& type, std::string const& shape, std::string const& offsets) {
    return "\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets;
  };
  check_all_refused({
      {one_tensor(tensor("F32", "[2]", "[0,8]"), 7), {"tensor 't': data_offsets", "within the 7 bytes", "[0, 8]"}},
      {one_tensor(tensor("F32", "[2]", "[0,8]"), 9), {"expected 8 bytes", "given 9 bytes"}},
      {one_tensor(tensor("F32", "[2]", "[8,0]"), 8), {"tensor 't': data_offsets", "begin <= end", "[8, 0]"}},
      {one_tensor(tensor("F32", "[2]", "[0,4]"), 4), {"expected 8 bytes for F32 [2]", "given [0, 4], 4 bytes"}},
      {one_tensor(tensor("F64", "[2]", "[0,8]"), 8), {"expected 16 bytes for F64 [2]", "8 bytes"}},
      {one_tensor(tensor("F32", "[2]", "[1,9]"), 9), {"to start at byte 0", "1 (gap)"}},
      {one_tensor(tensor("F32", "[0]", "[4,4]"), 4), {"to start at byte 0", "4 (gap)"}},
      {one_tensor(tensor("F32", "[2]", "[18446744073709551608,18446744073709551615]"), 8), {"within the 8 bytes"}},
      {one_tensor(tensor("F32", "[4294967296,4294967296]", "[0,0]"), 0), {"tensor 't': shape", "2^63", "[4294967296"}},
      {one_tensor(tensor("F32", "[2305843009213693952]", "[0,0]"), 0), {"tensor 't': shape", "2^63"}},
      {one_tensor(tensor("F32", "[4294967296,0,4294967296]", "[0,0]"), 0), {"tensor 't': shape", "2^63"}},
      {one_tensor(tensor("F32", "[1,2,3,4,5,6,7,8,9,10]", "[0,0]"), 0), {"[1, 2, 3, 4, 5, 6, 7, 8, ...]"}},
      {file_of("{}", bytes(1)), {"expected 0 bytes", "given 1 bytes"}},
      {file_of("{\"a\":{" + tensor("F32", "[2]", "[0,8]") + "},\"b\":{" + tensor("F32", "[2]", "[4,12]") + "}}",
               bytes(12)),
       {"tensor 'b'", "to start at byte 8", "4 (overlap)"}},
      {file_of("{\"b\":{" + tensor("F32", "[2]", "[0,8]") + "},\"a\":{" + tensor("F32", "[2]", "[0,8]") + "}}",
               bytes(8)),
       {"to start at byte 8", "0 (overlap)"}},
      {file_of("{\"a\":{" + tensor("F32", "[1]", "[0,4]") + "},\"b\":{" + tensor("F32", "[1]", "[8,12]") + "}}",
               bytes(12)),
       {"tensor 'b'", "to start at byte 4", "8 (gap)"}},
      {file_of("{\"a\":{" + tensor("F32", "[1]", "[0,4]") + "},\"a\":{" + tensor("F32", "[1]", "[4,8]") + "}}",
               bytes(8)),
       {"each name once", "'a' twice"}},
  });
}

TEST_CASE("what a file holds reaches the terminal as plain text", "[io]") {
  auto const error = error_of([] { parse(file_of("{\"\\u001b[2J\\u0000\xc2\x9b\":5}")); });
  CHECK(missing(error, {"tensor '\\x1b[2J\\x00\\xc2\\x9b'"}) == "");
  auto const long_name = error_of([] { parse(file_of("{\"" + std::string(1'000'000, 'n') + "\":5}")); });
  CHECK(missing(long_name, {"nnn...'"}) == "");
  CHECK(long_name.size() < 300);
  auto const long_token = error_of([] { parse(file_of("{\"" + std::string(1'000'000, 'n') + "\xff\"}")); });
  CHECK(missing(long_token, {"expected JSON"}) == "");
  CHECK(long_token.size() < 400);
}

TEST_CASE("what was written is read back", "[io]") {
  io::tensor_file contents;
  contents.metadata = {{"format", "x"}, {"quote\"\\", "line\nbreak \xc3\xa9"}, {"", ""}};
  contents.tensors = {{"a", some_tensor(io::dtype::f16, {3, 1})}, {"b", some_tensor(io::dtype::f64, {2, 3})},
                      {"c", some_tensor(io::dtype::bf16, {})},    {"d", some_tensor(io::dtype::f32, {5})},
                      {"e", some_tensor(io::dtype::i32, {0, 4})}, {"\"f\"", some_tensor(io::dtype::i64, {1, 1, 1})}};
  scratch_directory const scratch;
  io::write(scratch / "out.safetensors", contents);
  CHECK(io::read(scratch / "out.safetensors") == contents);
  CHECK(slurp(scratch / "out.safetensors") == io::serialize(contents, "f"));
  CHECK(scratch.entries() == 1);

  SECTION("over what was there") {
    io::write(scratch / "out.safetensors", {{"k", "v"}}, {});
    CHECK(io::read(scratch / "out.safetensors") == io::tensor_file{{{"k", "v"}}, {}});
  }
  SECTION("through a link, which stays one") {
    std::filesystem::create_symlink(scratch / "out.safetensors", scratch / "link");
    io::write(scratch / "link", {{"k", "v"}}, {});
    CHECK(std::filesystem::is_symlink(scratch / "link"));
    CHECK(io::read(scratch / "out.safetensors").metadata.count("k") == 1);
  }
  SECTION("with the data, and each tensor, aligned") {
    auto const written = slurp(scratch / "out.safetensors");
    std::uint64_t length = 0;
    std::memcpy(&length, written.data(), 8);
    CHECK(length % 8 == 0);
    for (auto const& [name, tensor] : contents.tensors) {
      auto const at = std::search(written.begin() + 8 + static_cast<std::ptrdiff_t>(length), written.end(),
                                  tensor.bytes.begin(), tensor.bytes.end());
      auto const size = static_cast<std::ptrdiff_t>(io::item_size(tensor.type));
      if (!tensor.bytes.empty() && tensor.bytes.size() > 2) CHECK((at - written.begin()) % size == 0);
    }
  }
}

TEST_CASE("tensors that do not fit their shape are not written", "[io]") {
  scratch_directory const scratch;
  auto const refusal = [&](std::string const& name, io::tensor const& tensor) {
    auto const error = error_of([&] { io::write(scratch / "out", {}, {{name, tensor}}); });
    CHECK(scratch.entries() == 0);
    return error;
  };
  CHECK(missing(refusal("t", {io::dtype::f32, {2}, bytes(7)}), {"tensor 't'", "8 bytes for F32 [2]", "given 7"}) == "");
  CHECK(missing(refusal("t", {io::dtype::f32, {-1}, bytes(0)}), {"tensor 't'", "F32 [-1]"}) == "");
  CHECK(missing(refusal("__metadata__", {io::dtype::f32, {0}, {}}), {"another name"}) == "");
  CHECK(missing(refusal("\xff", {io::dtype::f32, {0}, {}}), {"UTF-8"}) == "");
  CHECK(missing(error_of([&] { io::write(scratch / "out", {{"k", "\xff"}}, {}); }), {"UTF-8"}) == "");
}

TEST_CASE("a place that cannot be written is refused and left as it was", "[io]") {
  scratch_directory const scratch;
  io::tensor_file const large{{}, {{"t", some_tensor(io::dtype::f64, {100'000})}}};
  CHECK(missing(error_of([&] { io::write(scratch / "no/out", large); }), {"no/out: cannot be written"}) == "");
  std::filesystem::create_directory(scratch / "folder");
  CHECK(missing(error_of([&] { io::write(scratch / "folder", large); }), {"folder: expected a regular file"}) == "");
  CHECK(missing(error_of([&] { io::write("/dev/null", large); }), {"/dev/null: expected a regular file"}) == "");
  CHECK(std::filesystem::is_character_file("/dev/null"));
  std::filesystem::create_symlink(scratch / "nowhere", scratch / "dangling");
  CHECK(missing(error_of([&] { io::write(scratch / "dangling", large); }), {"dangling: cannot be written"}) == "");
}

TEST_CASE("a full disk leaves the old file and nothing else", "[io]") {
  scratch_directory const scratch;
  io::write(scratch / "out", {{"age", "old"}}, {});
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  auto const at_once = error_of([&] { io::write(scratch / "out", {}, {{"t", some_tensor(io::dtype::f64, {9999})}}); });
  // The last bytes wait in the stream's buffer until it is closed: an error that only the closing sees.
  auto const at_close = error_of([&] { io::write(scratch / "out", {}, {{"t", some_tensor(io::dtype::f64, {510})}}); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(missing(at_once, {"out: cannot be written"}) == "");
  CHECK(missing(at_close, {"out: cannot be written"}) == "");
  CHECK(io::read(scratch / "out").metadata.at("age") == "old");
  CHECK(scratch.entries() == 1);
}

TEST_CASE("a path that is no file with bytes in it is refused", "[io]") {
  scratch_directory const scratch;
  auto const refusal = [](std::filesystem::path const& path) { return error_of([&] { io::read(path); }); };
  CHECK(missing(refusal(scratch / "absent"), {"absent: cannot be opened"}) == "");
  CHECK(missing(refusal(scratch / ""), {"expected a regular file"}) == "");
  CHECK(missing(refusal("/dev/zero"), {"/dev/zero: expected a regular file"}) == "");
  CHECK(missing(refusal(""), {"cannot be opened"}) == "");
  CHECK(missing(refusal(std::string(5000, 'n')), {"cannot be opened"}) == "");
  REQUIRE(mkfifo((scratch / "pipe").c_str(), 0600) == 0);
  CHECK(missing(refusal(scratch / "pipe"), {"pipe: expected a regular file"}) == "");
  spill(scratch / "empty", {});
  CHECK(missing(refusal(scratch / "empty"), {"empty: no safetensors file", "given 0 bytes"}) == "");
  // A header that claims the whole of a file which is mostly not there.
  spill(scratch / "sparse", little_endian(50'000'000) + to_bytes("{"));
  CHECK(missing(refusal(scratch / "sparse"), {"sparse: no safetensors file: header length", "given 50000000"}) == "");
}

TEST_CASE("tensors of every other type pass through, whatever the size of their elements", "[io]") {
  std::string const header =
      R"({"flags":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},"nibbles":{"dtype":"F4","shape":[5],"data_offsets":[3,6]},)"
      R"("mask":{"dtype":"I8","shape":[2],"data_offsets":[6,8]},"next":{"dtype":"f32","shape":[1],"data_offsets":[8,9]}})";
  auto const file = file_of(header, to_bytes("abcdefghi"));
  auto const read = io::parse(file, "f");
  CHECK(read.tensors.at("flags").type == io::dtype::boolean);
  CHECK(read.tensors.at("nibbles").type == io::dtype::other);
  CHECK(io::type_name(read.tensors.at("nibbles")) == "F4");
  CHECK(read.tensors.at("nibbles").bytes == to_bytes("def"));
  CHECK(io::type_name(read.tensors.at("next")) == "f32");
  CHECK(io::parse(io::serialize(read, "f"), "f") == read);
  // A type that is known is held to its size.
  auto const short_of = file_of(R"({"t":{"dtype":"I8","shape":[2],"data_offsets":[0,1]}})", to_bytes("a"));
  CHECK(missing(error_of([&] { io::parse(short_of, "f"); }), {"tensor 't'", "2 bytes for I8 [2]"}) == "");
}

TEST_CASE("a file that is no safetensors file is told so, and what it seems to be", "[io]") {
  auto const told = [](bytes const& contents) { return error_of([&] { io::parse(contents, "f"); }); };
  CHECK(missing(told(to_bytes(std::string("PK\x03\x04") + std::string(40, 'x'))), {"no safetensors file", "zip archive", "torch.save"}) == "");
  CHECK(missing(told(to_bytes(std::string("\x93NUMPY") + std::string(40, 'x'))), {"no safetensors file", "numpy.save"}) == "");
  CHECK(missing(told(to_bytes("{\"a\": [1, 2, 3], \"b\": 4}")), {"no safetensors file", "JSON"}) == "");
  CHECK(missing(told(to_bytes("some plain text, no more")), {"no safetensors file"}) == "");
  CHECK(missing(told(to_bytes("abc")), {"no safetensors file", "3 bytes"}) == "");
  CHECK(missing(told(file_of("[1, 2]")), {"no safetensors file", "starts with '{'"}) == "");
}

TEST_CASE("disk and memory give the same", "[io]") {
  for (auto const& path : case_paths()) {
    INFO(path.string());
    auto const contents = slurp(path);
    CHECK(io::read(path) == io::parse(contents, path.string()));
  }
}
