#pragma once
/// @file
/// Carving a caller's scratch memory into arrays. The same layout code runs twice: once over nothing, to count, and once for real.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/detail/size.hpp"
#include "palimpsa/error.hpp"
#include "palimpsa/execution.hpp"

namespace palimpsa::inline PALIMPSA_ABI {

/// Hands out aligned arrays from a block of bytes, or only counts when it has no block.
class arena {
 public:
  /// Every array starts at a multiple of this (a cache line, and the widest vector).
  static constexpr std::size_t alignment = 64;

  /// Counts only.
  arena() = default;
  /// Hands out parts of `bytes`, from its first aligned address.
  explicit arena(std::byte* bytes) : base_(bytes) {}

  /// n elements of T, uninitialised; null while counting.
  /// @throws argument_error  if no memory is that large; what has been counted once does not throw again
  template <class T>
  T* take(std::int64_t n) {
    std::int64_t const bytes = checked::sum(checked::product(n, static_cast<std::int64_t>(sizeof(T))), static_cast<std::int64_t>(used_));
    if (n < 0 || bytes > checked::most)
      throw argument_error("workspace", "a call that needs at most 2^56 bytes", "sizes that need more");
    std::size_t const start = used_;
    used_ += (static_cast<std::size_t>(n) * sizeof(T) + alignment - 1) / alignment * alignment;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + start);
  }

  /// Bytes handed out so far, a multiple of the alignment.
  std::size_t used() const { return used_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t used_ = 0;
};

namespace detail {

/// The first aligned byte of a caller's workspace, once it is known to hold `needed` bytes from any address.
inline std::byte* aligned_workspace(workspace given, std::size_t needed) {
  if (given.size() < needed)
    throw argument_error("workspace", "at least " + std::to_string(needed) + " bytes", std::to_string(given.size()) + " bytes");
  auto const address = reinterpret_cast<std::uintptr_t>(given.data());
  return given.data() + (arena::alignment - address % arena::alignment) % arena::alignment;
}

/// Room for `used` bytes from any start address.
inline std::size_t padded(std::size_t used) { return used == 0 ? 0 : used + arena::alignment; }

/// Memory for a call that was told to allocate.
struct owned_workspace {
  /// `size` bytes.
  explicit owned_workspace(std::size_t size) : bytes(new std::byte[size]), count(size) {}
  std::unique_ptr<std::byte[]> bytes;  ///< the block
  std::size_t count;                   ///< its size
  /// As a span.
  operator workspace() const { return {bytes.get(), count}; }
};

}  // namespace detail
}  // namespace palimpsa
