// Elements to doubles and back. The right value of a rounding is found from the two neighbours and their midpoint, not
// by rounding again.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "io/file_builder.hpp"
#include "palimpsa/io/convert.hpp"
#include "support/catch.hpp"

namespace io = palimpsa::io;
using test_io::error_of;
using test_io::missing;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Every value of a 16-bit format is kept; between neighbours the nearer one wins, and the even one at the midpoint.
template <class Format> void check_every_rounding() {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < Format::infinity; ++bits) {
    double const low = Format::decode(bits);
    bool const last = bits + 1 == Format::infinity;
    double const high =
        last ? 2 * low - Format::decode(bits - 1) : Format::decode(bits + 1);  // overflow starts halfway
    double const middle = (low + high) / 2;
    std::uint32_t const even = bits + bits % 2;
    for (std::uint32_t const sign : {std::uint32_t{0}, Format::sign_bit}) {
      double const s = sign == 0 ? 1 : -1;
      wrong += Format::decode(bits | sign) != s * low;
      wrong += Format::encode(s * low) != (bits | sign);
      wrong += Format::encode(s * middle) != (even | sign);
      wrong += Format::encode(s * std::nextafter(middle, 0)) != (bits | sign);
      wrong += Format::encode(s * std::nextafter(middle, infinity)) != ((bits + 1) | sign);
    }
  }
  CHECK(wrong == 0);
}

template <class Format> void check_specials() {
  CHECK(Format::encode(infinity) == Format::infinity);
  CHECK(Format::encode(-infinity) == (Format::infinity | Format::sign_bit));
  CHECK(Format::encode(1e300) == Format::infinity);
  CHECK(Format::encode(-0.0) == Format::sign_bit);
  CHECK(std::signbit(Format::decode(Format::sign_bit)));
  CHECK(Format::encode(std::numeric_limits<double>::denorm_min()) == 0);
  CHECK(Format::decode(Format::infinity) == infinity);
  CHECK(Format::decode(Format::infinity | Format::sign_bit) == -infinity);
  CHECK(std::isnan(Format::decode(Format::infinity + 1)));
  CHECK(std::isnan(Format::decode(Format::encode(std::numeric_limits<double>::quiet_NaN()))));
}

}  // namespace

TEST_CASE("16-bit floats round to nearest even", "[io]") {
  check_every_rounding<io::bfloat16>();
  check_every_rounding<io::binary16>();
}

TEST_CASE("infinities, zeros and NaN survive", "[io]") {
  check_specials<io::binary32>();
  check_specials<io::bfloat16>();
  check_specials<io::binary16>();
}

TEST_CASE("formats are the ones meant", "[io]") {
  CHECK(io::binary16::decode(0x3C00) == 1);
  CHECK(io::binary16::decode(0x7BFF) == 65504);
  CHECK(io::binary16::decode(0x0001) == std::ldexp(1, -24));
  CHECK(io::binary16::decode(0x0400) == std::ldexp(1, -14));
  CHECK(io::binary16::decode(0xC000) == -2);
  for (std::uint32_t bits = 0; bits < io::bfloat16::infinity; ++bits) {  // bfloat16 is the upper half of a float
    REQUIRE(io::bfloat16::decode(bits) == static_cast<double>(std::bit_cast<float>(bits << 16)));
  }
}

TEST_CASE("F32 agrees with the machine's float", "[io]") {
  unsigned const seed = 20240229;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200'000; ++i) {
    auto const x = std::bit_cast<double>(random());
    if (std::isnan(x)) continue;
    // The random exponent is mostly far outside float's, so half of the numbers are drawn within it.
    int exponent = 0;
    double const fraction = std::frexp(x, &exponent);
    double const y = i % 2 == 0 ? x : std::ldexp(fraction, static_cast<int>(random() % 300) - 155);
    if (std::abs(y) > (std::numeric_limits<float>::max)()) continue;
    auto const bits = std::bit_cast<std::uint32_t>(static_cast<float>(y));
    REQUIRE(io::binary32::encode(y) == bits);
    REQUIRE(io::binary32::decode(bits) == static_cast<double>(static_cast<float>(y)));
  }
}

TEST_CASE("doubles are rounded once", "[io]") {
  // Just above a tie of bfloat16, so little that a float falls back onto the tie, and from there to even.
  double const above_tie = 1 + std::ldexp(1, -8) + std::ldexp(1, -40);
  CHECK(io::bfloat16::encode(above_tie) == 0x3F81);
  CHECK(io::bfloat16::encode(static_cast<double>(static_cast<float>(above_tie))) == 0x3F80);
  std::vector<double> const values{above_tie, 1 + std::ldexp(1, -11) + std::ldexp(1, -40)};  // the second for float16
  auto const rounded = [&](io::dtype type, std::size_t i) {
    return io::to_doubles(io::make_tensor(type, {2}, std::span<double const>(values)))[i];
  };
  CHECK(rounded(io::dtype::bf16, 0) == 1 + std::ldexp(1, -7));
  CHECK(rounded(io::dtype::f16, 1) == 1 + std::ldexp(1, -10));
}

TEST_CASE("tensors keep their values", "[io]") {
  std::vector<double> const values{1, -2.5, 0, -infinity, 0.0625, 96};  // all exact in every float type
  for (auto const type : {io::dtype::f64, io::dtype::f32, io::dtype::bf16, io::dtype::f16}) {
    auto const tensor = io::make_tensor(type, {2, 3}, std::span<double const>(values));
    CHECK(tensor.bytes.size() == 6 * io::item_size(type));
    CHECK(io::to_doubles(tensor) == values);
    CHECK(missing(error_of([&] { io::to_integers(tensor); }), {"I32 or I64", std::string(io::name_of(type))}) == "");
  }
  std::vector<std::int64_t> const lengths{0, 7, -1, (std::numeric_limits<std::int32_t>::min)()};
  for (auto const type : {io::dtype::i64, io::dtype::i32}) {
    auto const tensor = io::make_tensor(type, {4}, std::span<std::int64_t const>(lengths));
    CHECK(io::to_integers(tensor) == lengths);
    CHECK(missing(error_of([&] { io::to_doubles(tensor); }), {"BF16", std::string(io::name_of(type))}) == "");
  }
}

TEST_CASE("tensors that cannot be are not made", "[io]") {
  std::vector<double> const reals(5);
  std::vector<std::int64_t> const large{std::int64_t{1} << 31};
  auto const of_reals = [&](io::dtype type, std::vector<std::int64_t> shape) {
    return error_of([&] { io::make_tensor(type, shape, std::span<double const>(reals)); });
  };
  CHECK(missing(of_reals(io::dtype::f32, {2, 3}), {"shape [2, 3]", "6 values", "given 5 values"}) == "");
  CHECK(missing(of_reals(io::dtype::f32, {-5}), {"shape [-5]"}) == "");
  CHECK(missing(of_reals(io::dtype::i32, {5}), {"F64, F32, BF16 or F16", "given I32"}) == "");
  auto const of_integers = [&](io::dtype type) {
    return error_of([&] { io::make_tensor(type, {1}, std::span<std::int64_t const>(large)); });
  };
  CHECK(missing(of_integers(io::dtype::i32), {"fit I32", "2147483648"}) == "");
  CHECK(missing(of_integers(io::dtype::f32), {"I32 or I64", "given F32"}) == "");
}
