#pragma once
/// @file
/// Where an element of a tensor of a case lies: sequence, token, head, channels. By it a report says which element is worst,
/// and holds the parts of a tensor on their own.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/case_data.hpp"
#include "palimpsa/io/condition.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// An element by the coordinates that its tensor has; -1 for one that it has not.
struct element_place {
  std::int64_t sequence = -1;  ///< of the case
  std::int64_t token = -1;     ///< of the sequence
  std::int64_t head = -1;      ///< value head, or key head of q and k
  std::int64_t row = -1;       ///< of a state
  std::int64_t channel = -1;   ///< the last axis
};

/// "sequence 0, token 17, head 1, channel 3"
inline std::string text_of(element_place const& place) {
  std::pair<char const*, std::int64_t> const named[] = {{"sequence ", place.sequence},
                                                        {"token ", place.token},
                                                        {"head ", place.head},
                                                        {"row ", place.row},
                                                        {place.row < 0 ? "channel " : "column ", place.channel}};
  std::string text;
  for (auto const& [name, index] : named) {
    if (index >= 0) text += (text.empty() ? "" : ", ") + (name + std::to_string(index));
  }
  return text;
}

/// What the axes of a tensor are.
enum class tensor_axes {
  tokens,  ///< [B, T, heads] or [B, T, heads, channels]
  states,  ///< [N, heads, rows, columns]
  heads    ///< [heads] or [heads, channels]
};

/// The axes of one of case_fields.
constexpr tensor_axes axes_of(std::string_view name) {
  auto const ends_in = [&](std::string_view word) {
    return name.size() >= word.size() && name.substr(name.size() - word.size()) == word;
  };
  if (ends_in("prior")) return tensor_axes::heads;
  return ends_in("_eta") || ends_in("_evidence") ? tensor_axes::states : tensor_axes::tokens;
}

/// A tensor of a case: from the number of an element, in C order, to its place.
class tensor_layout {
 public:
  /// @param ranges tokens of each sequence, as sequences_of has them
  tensor_layout(std::string_view name, std::vector<std::int64_t> shape, std::vector<detail::token_range> ranges)
      : axes_(axes_of(name)), shape_(std::move(shape)), ranges_(std::move(ranges)) {
    shape_.resize((std::max)(shape_.size(), static_cast<std::size_t>(axes_ == tensor_axes::heads ? 2 : 4)), 0);
  }

  tensor_axes axes() const { return axes_; }  ///< what they are
  /// Number of heads.
  std::int64_t heads() const {
    return shape_[axes_ == tensor_axes::tokens ? 2 : axes_ == tensor_axes::states ? 1 : 0];
  }
  /// Number of sequences; 0 where the tensor sums over them.
  std::int64_t sequences() const {
    return axes_ == tensor_axes::heads ? 0 : static_cast<std::int64_t>(ranges_.size());
  }
  /// Tokens of a sequence.
  std::int64_t tokens(std::int64_t sequence) const {
    auto const& range = ranges_[static_cast<std::size_t>(sequence)];
    return range.last - range.first;
  }
  /// Numbers of a head at a token (tokens), or of a head's state.
  std::int64_t block() const {
    return axes_ == tensor_axes::tokens   ? (std::max)(shape_[3], std::int64_t{1})
           : axes_ == tensor_axes::states ? shape_[2] * shape_[3]
                                          : (std::max)(shape_[1], std::int64_t{1});
  }
  /// Rows and columns of a state.
  std::pair<std::int64_t, std::int64_t> state() const { return {shape_[2], shape_[3]}; }
  /// Number of the first element of a head at a token of a sequence.
  std::size_t first_of(std::int64_t sequence, std::int64_t token, std::int64_t head) const {
    std::int64_t const outer = axes_ == tensor_axes::tokens   ? ranges_[static_cast<std::size_t>(sequence)].first + token
                               : axes_ == tensor_axes::states ? sequence
                                                              : 0;
    return static_cast<std::size_t>((outer * heads() + head) * block());
  }

  /// The place of element i.
  element_place place(std::size_t i) const {
    auto const size = block(), n = static_cast<std::int64_t>(i), inner = n % size, outer = n / size / heads();
    element_place result;
    result.head = n / size % heads();
    if (axes_ == tensor_axes::tokens) {
      auto const after = std::upper_bound(ranges_.begin(), ranges_.end(), outer,
                                          [](std::int64_t token, detail::token_range const& r) { return token < r.last; });
      if (after == ranges_.end()) return result;
      result.sequence = after - ranges_.begin();
      result.token = outer - after->first;
      if (shape_[3] > 0) result.channel = inner;
    } else if (axes_ == tensor_axes::states) {
      result.sequence = outer;
      result.row = inner / shape_[3];
      result.channel = inner % shape_[3];
    } else if (shape_[1] > 0) {
      result.channel = inner;
    }
    return result;
  }

 private:
  tensor_axes axes_;
  std::vector<std::int64_t> shape_;
  std::vector<detail::token_range> ranges_;
};

}  // namespace palimpsa::io
