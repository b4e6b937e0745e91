#pragma once
/// @file
/// Numbers to bytes and back, for every element type. Doubles are rounded once, to nearest even, straight into the
/// narrow type: by way of float a double close to a tie of bfloat16 or float16 would be rounded twice.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/file_error.hpp"
#include "palimpsa/io/tensor.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// An IEEE-754 style binary format of at most 32 bits: sign, ExponentBits, MantissaBits.
template <int ExponentBits, int MantissaBits> struct binary_format {
  static constexpr int bias = (1 << (ExponentBits - 1)) - 1;                                    ///< exponent of 1.0
  static constexpr int smallest_exponent = 1 - bias;                                            ///< of a normal number
  static constexpr std::uint32_t sign_bit = std::uint32_t{1} << (ExponentBits + MantissaBits);  ///< the top bit
  static constexpr std::uint32_t infinity = ((std::uint32_t{1} << ExponentBits) - 1) << MantissaBits;  ///< its bits
  static constexpr std::uint32_t quiet_nan = infinity | (std::uint32_t{1} << (MantissaBits - 1));      ///< its bits

  /// x rounded to nearest even; too large becomes an infinity, a NaN the quiet NaN of its sign.
  static std::uint32_t encode(double x) noexcept {
    std::uint32_t const sign = std::signbit(x) ? sign_bit : 0;
    if (std::isnan(x)) return sign | quiet_nan;
    if (std::isinf(x)) return sign | infinity;
    double const size = std::abs(x);
    int const exponent = (std::max)(std::ilogb(size), smallest_exponent);
    // In units of the last place the rounded value carries the hidden bit, so adding it to (exponent - 1) in the
    // exponent field is right for normal and subnormal numbers alike, and a carry moves up into the exponent by itself.
    auto const units = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(size, MantissaBits - exponent)));
    std::uint64_t const bits = (static_cast<std::uint64_t>(exponent + bias - 1) << MantissaBits) + units;
    return sign | (bits < infinity ? static_cast<std::uint32_t>(bits) : infinity);
  }

  /// The value of these bits, exact.
  static double decode(std::uint32_t bits) noexcept {
    double const sign = (bits & sign_bit) != 0 ? -1.0 : 1.0;
    std::uint32_t const mantissa = bits & ((std::uint32_t{1} << MantissaBits) - 1);
    std::uint32_t const exponent = (bits & infinity) >> MantissaBits;
    if ((bits & infinity) == infinity) {
      double const special =
          mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
      return std::copysign(special, sign);
    }
    if (exponent == 0) return sign * std::ldexp(static_cast<double>(mantissa), smallest_exponent - MantissaBits);
    std::uint32_t const significand = mantissa | (std::uint32_t{1} << MantissaBits);
    return sign * std::ldexp(static_cast<double>(significand), static_cast<int>(exponent) - bias - MantissaBits);
  }
};

using binary32 = binary_format<8, 23>;  ///< F32
using bfloat16 = binary_format<8, 7>;   ///< BF16
using binary16 = binary_format<5, 10>;  ///< F16

/// Is it one of F64 F32 BF16 F16?
constexpr bool is_float(dtype type) noexcept {
  return type == dtype::f64 || type == dtype::f32 || type == dtype::bf16 || type == dtype::f16;
}

/// x rounded once, to nearest even, to a floating-point type; as it is for any other.
inline double rounded(double x, dtype type) {
  if (type == dtype::f32) return binary32::decode(binary32::encode(x));
  if (type == dtype::bf16) return bfloat16::decode(bfloat16::encode(x));
  if (type == dtype::f16) return binary16::decode(binary16::encode(x));
  return x;
}

namespace detail {

template <class Bits, class Convert> auto load_all(std::span<std::byte const> bytes, Convert convert) {
  std::vector<decltype(convert(Bits{}))> values(bytes.size() / sizeof(Bits));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Bits bits;  // a file promises no alignment
    std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    values[i] = convert(bits);
  }
  return values;
}

template <class Value, class Convert> std::vector<std::byte> store_all(std::span<Value const> values, Convert convert) {
  using bits_type = decltype(convert(Value{}));
  std::vector<std::byte> bytes(values.size() * sizeof(bits_type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    bits_type const bits = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(bits_type), &bits, sizeof(bits_type));
  }
  return bytes;
}

template <class Value>
void check_count(std::vector<std::int64_t> const& shape, dtype type, std::span<Value const> values) {
  auto const needed = byte_count(type, shape);
  if (!needed || *needed / item_size(type) != values.size()) {
    refuse("tensor to write", "shape " + shape_text(shape),
           needed ? std::to_string(*needed / item_size(type)) + " values" : "extents that can be addressed",
           std::to_string(values.size()) + " values");
  }
}

}  // namespace detail

/// The values of a floating-point tensor as doubles, exact. @throws file_error for another type.
inline std::vector<double> to_doubles(tensor const& source) {
  std::span<std::byte const> const bytes(source.bytes);
  switch (source.type) {
    case dtype::f64:
      return detail::load_all<std::uint64_t>(bytes, [](std::uint64_t b) { return std::bit_cast<double>(b); });
    case dtype::f32:
      return detail::load_all<std::uint32_t>(bytes, binary32::decode);
    case dtype::bf16:
      return detail::load_all<std::uint16_t>(bytes, [](std::uint16_t b) { return bfloat16::decode(b); });
    case dtype::f16:
      return detail::load_all<std::uint16_t>(bytes, [](std::uint16_t b) { return binary16::decode(b); });
    default:
      break;
  }
  throw file_error("expected a tensor of dtype F64, F32, BF16 or F16, given " + detail::printable(type_name(source)));
}

/// The values of an I32 or I64 tensor. @throws file_error for another type.
inline std::vector<std::int64_t> to_integers(tensor const& source) {
  std::span<std::byte const> const bytes(source.bytes);
  if (source.type == dtype::i64) {
    return detail::load_all<std::uint64_t>(bytes, [](std::uint64_t b) { return static_cast<std::int64_t>(b); });
  }
  if (source.type == dtype::i32) {
    return detail::load_all<std::uint32_t>(
        bytes, [](std::uint32_t b) { return static_cast<std::int64_t>(static_cast<std::int32_t>(b)); });
  }
  throw file_error("expected a tensor of dtype I32 or I64, given " + detail::printable(type_name(source)));
}

/// A floating-point tensor of the given type from doubles in C order, each rounded once to nearest even.
/// @throws file_error if the number of values is not the product of the shape, or the type is no floating-point type.
inline tensor make_tensor(dtype type, std::vector<std::int64_t> shape, std::span<double const> values) {
  detail::check_count(shape, type, values);
  auto const narrow = [](std::uint32_t bits) { return static_cast<std::uint16_t>(bits); };
  switch (type) {
    case dtype::f64:
      return {type, std::move(shape),
              detail::store_all(values, [](double x) { return std::bit_cast<std::uint64_t>(x); })};
    case dtype::f32:
      return {type, std::move(shape), detail::store_all(values, binary32::encode)};
    case dtype::bf16:
      return {type, std::move(shape), detail::store_all(values, [=](double x) { return narrow(bfloat16::encode(x)); })};
    case dtype::f16:
      return {type, std::move(shape), detail::store_all(values, [=](double x) { return narrow(binary16::encode(x)); })};
    default:
      break;
  }
  throw file_error("tensor to write: expected dtype F64, F32, BF16 or F16, given " + std::string(name_of(type)));
}

/// An I64 or I32 tensor from integers in C order.
/// @throws file_error if the count does not fit the shape, a value does not fit the type, or the type is no integer
/// type.
inline tensor make_tensor(dtype type, std::vector<std::int64_t> shape, std::span<std::int64_t const> values) {
  detail::check_count(shape, type, values);
  if (type == dtype::i64) return {type, std::move(shape), detail::store_all(values, [](std::int64_t x) { return x; })};
  if (type != dtype::i32) {
    throw file_error("tensor to write: expected dtype I32 or I64, given " + std::string(name_of(type)));
  }
  auto const fit = [](std::int64_t x) {
    auto const narrow = static_cast<std::int32_t>(x);
    if (narrow != x) throw file_error("tensor to write: expected values that fit I32, given " + std::to_string(x));
    return narrow;
  };
  return {type, std::move(shape), detail::store_all(values, fit)};
}

}  // namespace palimpsa::io
