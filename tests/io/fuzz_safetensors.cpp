// libFuzzer entry: any bytes are refused by file_error, or read and written back unchanged. Started on real files:
//
//     clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude tests/io/fuzz_safetensors.cpp -o fuzz
//     ./fuzz CORPUS_FOLDER tests/cases

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "palimpsa/io/case_file.hpp"
#include "palimpsa/io/safetensors.hpp"

namespace io = palimpsa::io;

namespace {

void read_back(std::span<std::byte const> contents) {
  io::tensor_file read;
  try {
    read = io::parse(contents, "fuzz");
  } catch (io::file_error const&) {
    return;
  }
  std::size_t held = 0;
  for (auto const& [name, tensor] : read.tensors) held += tensor.bytes.size();
  if (held > contents.size()) std::abort();  // overlapping tensors could make a small file large
  if (io::parse(io::serialize(read, "fuzz"), "fuzz") != read) std::abort();
  try {
    io::to_case(read, "fuzz");
  } catch (io::file_error const&) {
    return;
  }
}

/// The input as header and data, parted by its first zero byte: a mutation that changes the header's length would else
/// be refused for that alone.
std::vector<std::byte> with_right_length(std::span<std::byte const> input) {
  auto const zero = std::find(input.begin(), input.end(), std::byte{0});
  std::uint64_t const length = static_cast<std::uint64_t>(zero - input.begin());
  std::vector<std::byte> contents(sizeof length);
  std::memcpy(contents.data(), &length, sizeof length);
  contents.insert(contents.end(), input.begin(), zero);
  if (zero != input.end()) contents.insert(contents.end(), zero + 1, input.end());
  return contents;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const input = std::as_bytes(std::span<std::uint8_t const>(data, size));
  read_back(input);
  read_back(with_right_length(input));
  return 0;
}
