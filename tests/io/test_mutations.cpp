// Real case files, damaged: cut, flipped, spliced. Whatever comes out of it is either refused by file_error or a file
// that is written and read back unchanged; nothing else is thrown and nothing crashes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_builder.hpp"
#include "palimpsa/io/case_file.hpp"
#include "palimpsa/io/safetensors.hpp"
#include "support/catch.hpp"

namespace io = palimpsa::io;
using namespace test_io;

namespace {

enum class outcome { refused, no_case, accepted };

/// Reads a damaged file, as a tensor file and as a case.
outcome survive(bytes const& contents) {
  io::tensor_file read;
  try {
    read = io::parse(contents, "damaged");
  } catch (io::file_error const&) {
    return outcome::refused;
  }
  std::size_t held = 0;
  for (auto const& [name, tensor] : read.tensors) held += tensor.bytes.size();
  if (held > contents.size()) throw std::logic_error("more tensors than file");
  if (io::parse(io::serialize(read, "again"), "again") != read) throw std::logic_error("not read back as it was");
  try {
    io::to_case(read, "damaged");
  } catch (io::file_error const&) {
    return outcome::no_case;
  }
  return outcome::accepted;
}

std::size_t header_end(bytes const& contents) {
  std::uint64_t length = 0;
  std::memcpy(&length, contents.data(), sizeof length);
  return 8 + static_cast<std::size_t>(length);
}

/// The case files that are small enough to be read thousands of times.
std::vector<bytes> small_files() {
  std::vector<bytes> files;
  for (auto const& path : case_paths()) {
    if (std::filesystem::file_size(path) < 50'000) files.push_back(slurp(path));
  }
  return files;
}

unsigned seed() {
  auto const* const given = std::getenv("PALIMPSA_TEST_SEED");
  unsigned const value = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 20240607U;
  std::cout << "mutations: seed " << value << " (PALIMPSA_TEST_SEED)\n";
  return value;
}

using generator = std::mt19937_64;

std::size_t below(generator& random, std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

/// Where damage is done: mostly in the header, where it means something.
std::size_t place_in(bytes const& contents, generator& random) {
  return random() % 8 == 0 ? below(random, contents.size())
                           : below(random, (std::min)(header_end(contents), contents.size()));
}

void flip_bits(bytes& contents, generator& random) {
  for (auto count = 1 + random() % 4; count > 0; --count) {
    contents[place_in(contents, random)] ^= static_cast<std::byte>(1U << (random() % 8));
  }
}

void set_bytes(bytes& contents, generator& random) {
  constexpr char telling[] = "{}[]\",:0-9.eE\\u\xff\x80\0 truenull";  // with the zero at its end
  for (auto count = 1 + random() % 3; count > 0; --count) {
    contents[place_in(contents, random)] = static_cast<std::byte>(telling[below(random, std::size(telling))]);
  }
}

/// A run of bytes from one file goes into another, over what is there or between; half the time the length is made to
/// fit.
void splice(bytes& contents, bytes const& donor, generator& random) {
  auto const from = place_in(donor, random);
  auto const length = (std::min)(below(random, 200), donor.size() - from);
  auto const at = static_cast<std::ptrdiff_t>(place_in(contents, random));
  auto const first = donor.begin() + static_cast<std::ptrdiff_t>(from);
  auto const last = first + static_cast<std::ptrdiff_t>(length);
  if (random() % 2 == 0) {
    std::copy(first, first + (std::min)(last - first, contents.end() - contents.begin() - at), contents.begin() + at);
  } else {
    auto const header = header_end(contents);
    contents.insert(contents.begin() + at, first, last);
    auto const grown = little_endian(header - 8 + length);
    if (at >= 8 && random() % 2 == 0) std::copy(grown.begin(), grown.end(), contents.begin());
  }
}

/// A number of the header becomes one of the numbers that break arithmetic.
void change_number(bytes& contents, generator& random) {
  constexpr std::string_view numbers[] = {"0",
                                          "-1",
                                          "1e3",
                                          "4294967296",
                                          "9223372036854775807",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "99999999999999999999999999",
                                          "1",
                                          "3",
                                          "0.5"};
  auto const is_digit = [](std::byte b) { return b >= std::byte{'0'} && b <= std::byte{'9'}; };
  auto const header = contents.begin() + static_cast<std::ptrdiff_t>(header_end(contents));
  auto const first = std::find_if(
      contents.begin() + 8 + static_cast<std::ptrdiff_t>(below(random, header_end(contents) - 8)), header, is_digit);
  if (first == header) return;
  auto const last = std::find_if_not(first, header, is_digit);
  auto const number = to_bytes(numbers[below(random, std::size(numbers))]);
  auto const length = header_end(contents) - 8 + number.size() - static_cast<std::size_t>(last - first);
  auto const at = contents.erase(first, last);
  contents.insert(at, number.begin(), number.end());
  auto const new_length = little_endian(length);
  std::copy(new_length.begin(), new_length.end(), contents.begin());
}

}  // namespace

TEST_CASE("a file cut anywhere in its header, or anywhere after it, is refused", "[io]") {
  auto const files = small_files();
  REQUIRE(files.size() >= 4);
  for (std::size_t f = 0; f < files.size(); f += files.size() / 4) {
    auto const& whole = files[f];
    REQUIRE(survive(whole) == outcome::accepted);
    auto const header = header_end(whole);
    std::size_t accepted = 0;
    for (std::size_t size = 0; size < whole.size(); size += size < header ? 1 : 97) {
      auto const cut = bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      accepted += survive(cut) != outcome::refused;
      if (size < 8 || size > header) continue;
      // The same cut, in a file whose length field says so: the parser meets the end in the middle of the JSON.
      auto const told = little_endian(size - 8) + bytes(cut.begin() + 8, cut.end());
      accepted += size < header && survive(told) == outcome::accepted;
    }
    CHECK(accepted == 0);
  }
}

TEST_CASE("damaged files are refused or read, and nothing else", "[io]") {
  auto const files = small_files();
  generator random(seed());
  int refused = 0, no_case = 0, accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto contents = files[below(random, files.size())];
    switch (random() % 4) {
      case 0:
        flip_bits(contents, random);
        break;
      case 1:
        set_bytes(contents, random);
        break;
      case 2:
        splice(contents, files[below(random, files.size())], random);
        break;
      default:
        change_number(contents, random);
        break;
    }
    INFO("round " << round);
    outcome result{};
    REQUIRE_NOTHROW(result = survive(contents));
    refused += result == outcome::refused;
    no_case += result == outcome::no_case;
    accepted += result == outcome::accepted;
  }
  std::cout << "mutations: " << refused << " refused, " << no_case << " no case, " << accepted << " read\n";
  // Damage that is always refused, or never, would test nothing.
  CHECK(refused > 1000);
  CHECK(no_case > 100);
  CHECK(accepted > 100);
}
