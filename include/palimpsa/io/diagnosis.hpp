#pragma once
/// @file
/// Which usual mistake a wrong tensor shows by itself, without running anything: the right values times one factor, moved by a
/// token, transposed, with heads in another order; or right but for one head, one sequence, the tokens from some token on.
/// Every statement is one that the numbers meet: what is left after it is the bound, or a few hundredths of the error.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/bounds.hpp"
#include "palimpsa/io/layout.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {

/// A tensor that failed.
struct suspect {
  tensor_layout const& layout;   ///< of its elements
  std::span<double const> yours;  ///< what is on trial
  std::span<double const> right;  ///< what it ought to be
  double error = 0;               ///< relative, of all of it
  double bound = 0;               ///< it missed
  double scale = 1;               ///< of the case
  double beta = 1;                ///< of the case, where it has one value everywhere; else 1
};

namespace detail {

/// "0.125"
inline std::string plain_number(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", x);
  return text.data();
}

/// "head 3", "heads 0, 2 and 3"; of many, the first four and how many more.
inline std::string list_of(std::string const& one, std::vector<std::int64_t> const& which) {
  std::size_t const shown = which.size() > 5 ? 4 : which.size();
  std::string text = one + (which.size() > 1 ? "s " : " ");
  for (std::size_t i = 0; i < shown; ++i) {
    text += (i == 0 ? "" : i + 1 == which.size() ? " and " : ", ") + std::to_string(which[i]);
  }
  return text + (shown < which.size() ? " and " + std::to_string(which.size() - shown) + " more" : "");
}

/// Does a guess that leaves this error explain the whole of it?
inline bool explains(double left, suspect const& s) {
  return left <= 0.1 * s.error && left <= (std::max)(2 * s.bound, 0.03 * s.error);
}

/// ‖yours - guess‖/‖right‖ over pairs that visit(take) hands to take(yours, guess, right).
template <class Visit> double error_left(Visit visit) {
  double gap = 0, norm = 0;
  visit([&](double x, double guess, double right) {
    gap += (x - guess) * (x - guess);
    norm += right * right;
  });
  return norm > 0 && std::isfinite(gap) ? std::sqrt(gap / norm) : HUGE_VAL;
}

/// The numbers of one head of a tensor, one span for each token or state.
template <class F> void each_block(tensor_layout const& layout, std::int64_t head, F f) {
  bool const by_token = layout.axes() == tensor_axes::tokens;
  for (std::int64_t n = 0; n < (std::max)(layout.sequences(), std::int64_t{1}); ++n)
    for (std::int64_t t = 0; t < (by_token ? layout.tokens(n) : 1); ++t) f(n, t, layout.first_of(n, t, head));
}

/// The one factor between two tensors; nothing sensible where it does not explain the error, see `left`.
struct factor_fit {
  double factor = 0, left = HUGE_VAL;
  std::size_t count = 0;
};

inline factor_fit fit_factor(suspect const& s, std::int64_t first_head, std::int64_t last_head) {
  factor_fit fit;
  double cross = 0, square = 0;
  auto const over = [&](auto f) {
    for (std::int64_t h = first_head; h < last_head; ++h)
      each_block(s.layout, h, [&](std::int64_t, std::int64_t, std::size_t first) {
        for (std::size_t i = first; i < first + static_cast<std::size_t>(s.layout.block()); ++i) f(s.yours[i], s.right[i]);
      });
  };
  over([&](double x, double r) { cross += x * r, square += r * r, ++fit.count; });
  if (!(square > 0)) return fit;
  fit.factor = cross / square;
  fit.left = error_left([&](auto take) { over([&](double x, double r) { take(x, fit.factor * r, r); }); });
  return fit;
}

/// A factor in words: what it is made of, if of anything.
inline std::string factor_text(double factor, suspect const& s) {
  struct {
    double value;
    std::string means;
  } const known[] = {{-1, ": its sign is turned"},
                     {1 / s.scale, ", which is 1/scale: the scale is missing"},
                     {s.scale, ", which is the scale: it was applied once too often"},
                     {1 / (s.scale * s.scale), ", which is 1/scale²: the scale's square is missing"},
                     {s.scale * s.scale, ", which is the scale's square: it was applied twice too often"},
                     {-s.scale, ", which is minus the scale"},
                     {s.beta, ", which is beta: it was applied once too often"},
                     {1 / s.beta, ", which is 1/beta: beta is missing"}};
  for (auto const& one : known) {
    bool const near = std::abs(factor - one.value) <= 1e-3 * std::abs(one.value);
    if (near && std::abs(one.value - 1) > 1e-3) return plain_number(factor) + " times the right value" + one.means;
  }
  return plain_number(factor) + " times the right value";
}

inline bool is_factor(factor_fit const& fit, suspect const& s) {
  double const error = std::abs(fit.factor - 1);
  return fit.count >= 6 && fit.left <= 0.1 * error && fit.left <= (std::max)(2 * s.bound, 0.03 * error);
}

inline std::string one_factor(suspect const& s) {
  bool const zero = std::all_of(s.yours.begin(), s.yours.end(), [](double x) { return x == 0; });
  if (zero) return "all of it is 0";
  auto const fit = fit_factor(s, 0, s.layout.heads());
  return is_factor(fit, s) ? "everywhere " + factor_text(fit.factor, s) : "";
}

inline std::string head_factors(suspect const& s) {
  if (!(s.error > 4 * s.bound)) return {};
  std::string each;
  for (std::int64_t h = 0; h < s.layout.heads(); ++h) {
    auto const own = fit_factor(s, h, h + 1);
    if (s.layout.heads() < 2 || own.count < 6 || !(own.left <= (std::max)(2 * s.bound, 0.03 * s.error))) return {};
    if (h < 4) each += (h == 0 ? "" : ", ") + plain_number(own.factor);
  }
  return each.empty() ? "" : "every head is the right one times a factor of its own: " + each + (s.layout.heads() > 4 ? ", ..." : "");
}

/// ‖y_h - r_g‖/‖r_g‖ for head h of yours and head g of right.
inline double head_gap(suspect const& s, std::int64_t h, std::int64_t g) {
  return error_left([&](auto take) {
    each_block(s.layout, h, [&](std::int64_t n, std::int64_t t, std::size_t first) {
      std::size_t const other = s.layout.first_of(n, t, g);
      for (std::size_t i = 0; i < static_cast<std::size_t>(s.layout.block()); ++i)
        take(s.yours[first + i], s.right[other + i], s.right[other + i]);
    });
  });
}

inline std::string moved_heads(suspect const& s) {
  std::int64_t const heads = s.layout.heads();
  if (heads < 2 || heads > 64 || s.layout.block() * (std::max)(s.layout.sequences(), std::int64_t{1}) < 2) return {};
  std::vector<std::int64_t> from;
  std::string text;
  int shown = 0, moved = 0;
  for (std::int64_t h = 0; h < heads; ++h) {
    double best = HUGE_VAL;
    std::int64_t found = h;
    for (std::int64_t step = 0; step < heads; ++step) {
      std::int64_t const g = (h + step) % heads;
      double const gap = head_gap(s, h, g);
      if (gap < best * 0.5 || (step == 0 && gap <= 2 * s.bound)) best = gap, found = g;
      if (step == 0 && gap <= 2 * s.bound) break;
    }
    if (!(best <= (std::max)(2 * s.bound, 0.03))) return {};
    from.push_back(found);
    if (found == h) continue;
    ++moved;
    if (shown++ < 4) text += (text.empty() ? "head " : ", head ") + std::to_string(h) + " holds head " + std::to_string(found);
  }
  if (moved == 0) return {};
  std::vector<std::int64_t> sorted = from;
  std::sort(sorted.begin(), sorted.end());
  bool const repeats = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  return std::string(repeats ? "heads repeat: " : "heads are in another order: ") + text + (moved > 4 ? ", ..." : "");
}

/// yours_t = right_{t - by}
inline double shift_left(suspect const& s, std::int64_t by) {
  return error_left([&](auto take) {
    for (std::int64_t h = 0; h < s.layout.heads(); ++h)
      each_block(s.layout, h, [&](std::int64_t n, std::int64_t t, std::size_t first) {
        if (t - by < 0 || t - by >= s.layout.tokens(n)) return;
        std::size_t const other = s.layout.first_of(n, t - by, h);
        for (std::size_t i = 0; i < static_cast<std::size_t>(s.layout.block()); ++i)
          take(s.yours[first + i], s.right[other + i], s.right[other + i]);
      });
  });
}

inline std::string moved_by_a_token(suspect const& s) {
  if (s.layout.axes() != tensor_axes::tokens) return {};
  if (explains(shift_left(s, 1), s)) return "the value of the token before stands at every token";
  if (explains(shift_left(s, -1), s)) return "the value of the next token stands at every token";
  return {};
}

inline std::string transposed(suspect const& s) {
  if (s.layout.axes() != tensor_axes::states) return {};
  auto const [rows, columns] = s.layout.state();
  if (rows < 2 || columns < 2) return {};
  double const left = error_left([&, r = static_cast<std::size_t>(rows), c = static_cast<std::size_t>(columns)](auto take) {
    for (std::size_t first = 0; first + r * c <= s.yours.size(); first += r * c)
      for (std::size_t i = 0; i < r; ++i)
        for (std::size_t j = 0; j < c; ++j) take(s.yours[first + j * r + i], s.right[first + i * c + j], s.right[first + i * c + j]);
  });
  return explains(left, s) ? "every state is transposed" : "";
}

/// Relative errors of the parts of a tensor: part_of(place) is the number of a part, or -1.
template <class PartOf> std::vector<double> part_errors(suspect const& s, std::size_t parts, PartOf part_of) {
  std::vector<double> gap(parts), norm(parts);
  for (std::size_t i = 0; i < s.right.size(); ++i) {
    std::int64_t const part = part_of(s.layout.place(i));
    if (part < 0) continue;
    double const d = s.yours[i] - s.right[i];
    gap[static_cast<std::size_t>(part)] += std::isfinite(d) ? d * d : HUGE_VAL;
    norm[static_cast<std::size_t>(part)] += s.right[i] * s.right[i];
  }
  for (std::size_t p = 0; p < parts; ++p) gap[p] = gap[p] > 0 ? std::sqrt(gap[p] / (std::max)(norm[p], 1e-300)) : 0;
  return gap;
}

/// The parts whose error passes the bound, if they are at most half of all and stand out: roundings alone make errors differ too.
inline std::vector<std::int64_t> wrong_parts(std::vector<double> const& errors, double bound) {
  std::vector<std::int64_t> wrong;
  double most_right = bound, least_wrong = HUGE_VAL;
  for (std::size_t p = 0; p < errors.size(); ++p) {
    if (errors[p] <= bound) {
      most_right = (std::max)(most_right, errors[p]);
    } else {
      wrong.push_back(static_cast<std::int64_t>(p));
      least_wrong = (std::min)(least_wrong, errors[p]);
    }
  }
  return 2 * wrong.size() <= errors.size() && least_wrong > 4 * most_right ? wrong : std::vector<std::int64_t>{};
}

inline std::string wrong_heads(suspect const& s) {
  auto const errors = part_errors(s, static_cast<std::size_t>(s.layout.heads()), [](auto const& p) { return p.head; });
  auto const wrong = wrong_parts(errors, s.bound);
  if (wrong.empty()) return {};
  std::string text = "only " + list_of("head", wrong) + " of " + std::to_string(errors.size()) +
                     (wrong.size() == 1 ? " is wrong" : " are wrong");
  auto const fit = fit_factor(s, wrong.front(), wrong.front() + 1);
  return wrong.size() == 1 && is_factor(fit, s) ? text + ": " + factor_text(fit.factor, s) : text;
}

inline std::string wrong_sequences(suspect const& s) {
  auto const errors = part_errors(s, static_cast<std::size_t>(s.layout.sequences()), [](auto const& p) { return p.sequence; });
  auto const wrong = wrong_parts(errors, s.bound);
  if (wrong.empty()) return {};
  return "only " + list_of("sequence", wrong) + " of " + std::to_string(errors.size()) +
         (wrong.size() == 1 ? " is wrong" : " are wrong");
}

/// By tokens of the longest sequence. Most of those that are wrong have to miss the bound by far: roundings alone do not.
inline std::string wrong_from_a_token(suspect const& s) {
  if (s.layout.axes() != tensor_axes::tokens) return {};
  std::int64_t longest = 0;
  for (std::int64_t n = 0; n < s.layout.sequences(); ++n) longest = (std::max)(longest, s.layout.tokens(n));
  auto const errors = part_errors(s, static_cast<std::size_t>(longest), [](auto const& p) { return p.token; });
  auto const is_wrong = [&](double e) { return !(e <= s.bound); };
  auto const first = std::find_if(errors.begin(), errors.end(), is_wrong) - errors.begin();
  auto const last = errors.rend() - std::find_if(errors.rbegin(), errors.rend(), is_wrong);  // one past it
  if (first >= last) return {};
  auto const count = std::count_if(errors.begin() + first, errors.begin() + last, [&](double e) { return !(e <= 4 * s.bound); });
  if (last - first == 1 && longest > 2) return "only token " + std::to_string(first) + " is wrong";
  if (4 * count < 3 * (last - first)) return {};  // here and there
  if (first > 0 && 10 * (longest - last) <= longest - first)
    return "right up to token " + std::to_string(first - 1) + ", wrong from token " + std::to_string(first) + " on";
  if (first == 0 && last < longest)
    return "wrong up to token " + std::to_string(last - 1) + ", right from token " + std::to_string(last) + " on";
  return {};
}

/// Where it is not finite. Every sequence's and head's first such token, if all after it are, too.
inline std::string not_finite(suspect const& s) {
  auto const odd = [](double x) { return !std::isfinite(x); };
  auto const count = std::count_if(s.yours.begin(), s.yours.end(), odd);
  if (count == 0 || std::any_of(s.right.begin(), s.right.end(), odd)) return {};
  if (count == static_cast<std::ptrdiff_t>(s.yours.size())) return "no element of it is finite";
  std::string const share = std::to_string(count) + " of " + std::to_string(s.yours.size()) + " elements are not finite";
  if (s.layout.axes() != tensor_axes::tokens) return share;
  struct stretch {
    std::int64_t sequence, head, token;
  };
  std::vector<stretch> found;
  bool to_the_end = true;
  for (std::int64_t h = 0; h < s.layout.heads(); ++h)
    each_block(s.layout, h, [&](std::int64_t n, std::int64_t t, std::size_t first) {
      auto const block = s.yours.subspan(first, static_cast<std::size_t>(s.layout.block()));
      bool const bad = std::any_of(block.begin(), block.end(), odd);
      bool const open = !found.empty() && found.back().sequence == n && found.back().head == h;
      if (bad && !open) found.push_back({n, h, t});
      if (!bad && open) to_the_end = false;
    });
  if (!to_the_end) return share;
  auto const& first = found.front();
  auto const more = found.size() - 1;
  return "not finite from token " + std::to_string(first.token) + " on in sequence " + std::to_string(first.sequence) + ", head " +
         std::to_string(first.head) + (more > 0 ? ", and in " + std::to_string(more) + " more" : "");
}

}  // namespace detail

/// The usual mistake that a tensor shows by itself, in words; empty if it shows none.
/// @param otherwise asked after what the whole of it shows, before what parts of it show
inline std::string diagnose(suspect const& s, std::function<std::string()> const& otherwise = {}) {
  if (s.yours.size() != s.right.size() || s.yours.empty()) return {};
  if (auto text = detail::not_finite(s); !text.empty() || !std::isfinite(s.error)) return text;
  if (auto text = detail::one_factor(s); !text.empty()) return text;
  if (auto text = otherwise ? otherwise() : std::string(); !text.empty()) return text;
  for (auto const look : {detail::moved_heads, detail::moved_by_a_token, detail::transposed, detail::wrong_sequences,
                          detail::wrong_heads, detail::head_factors, detail::wrong_from_a_token}) {
    if (auto text = look(s); !text.empty()) return text;
  }
  return {};
}

}  // namespace palimpsa::io
