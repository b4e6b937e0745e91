#pragma once
/// @file
/// Three rules as someone would write them for that rule alone: plain arrays, H heads of K = V = Keys, no state before,
/// scale 1. They show what the library's generality costs. Nothing of the library's arithmetic is used here.
///
/// A register holds one cell of `width` value rows. Tokens go in tiles, and a group of keys stays in registers through
/// a tile.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cpu_machine.hpp"

namespace bench::by_hand {

/// Contiguous inputs [T,H,Keys] or [T,H], prior [H], and the output [T,H,Keys].
struct arrays {
  float const *q, *k, *v, *beta, *log_decay, *prior;
  float* out;
  std::int64_t tokens, heads;
};

/// Tokens a tile: their sums stay in the first-level cache between groups of keys, and go to the output together. (A
/// store to a row far away after every token made all other stores wait: Gated DeltaNet took three times as long.)
inline constexpr int tile = 32;

/// The value rows of a token, as registers.
inline loose_vector const* rows_of(float const* x) { return reinterpret_cast<loose_vector const*>(x); }
/// The same, to write.
inline loose_vector* rows_of(float* x) { return reinterpret_cast<loose_vector*>(x); }

/// x·y.
template <int Keys> float dot(float const* x, float const* y) {
  vector products{};
  for (int j = 0; j < Keys / width; ++j) products += rows_of(x)[j] * rows_of(y)[j];
  float sum = 0;
  for (int i = 0; i < width; ++i) sum += products[i];
  return sum;
}

/// What every loop needs of one tile of one head, tokens [first, first + count).
template <int Keys> struct tile_of_head {
  static constexpr int packs = Keys / width;  ///< registers that hold all value rows

  tile_of_head(arrays const& a, std::int64_t head, std::int64_t from)
      : first(from), count(static_cast<int>((std::min)(std::int64_t{tile}, a.tokens - from))) {
    for (int t = 0; t < count; ++t) {
      std::int64_t const at = (first + t) * a.heads + head;
      key[t] = a.k + at * Keys;
      query[t] = a.q + at * Keys;
      out[t] = a.out + at * Keys;
      alpha[t] = std::exp(a.log_decay[at]);
      beta[t] = a.beta[at];
      for (int i = 0; i < Keys; ++i) {
        written[t][i] = beta[t] * a.v[at * Keys + i];
        sum[t][i] = 0;
        key_squared[t][i] = key[t][i] * key[t][i] * beta[t];
      }
    }
  }

  /// The sums to the output.
  void leave() const {
    for (int t = 0; t < count; ++t)
      for (int i = 0; i < Keys; ++i) out[t][i] = sum[t][i];
  }

  std::int64_t first;
  int count;
  float const *key[tile], *query[tile];
  float* out[tile];
  float alpha[tile], beta[tile];
  alignas(64) float written[tile][Keys];      ///< β v
  alignas(64) float key_squared[tile][Keys];  ///< β k²
  alignas(64) float sum[tile][Keys];          ///< Σ_j of the read
};

/// η ← αη + βv kᵀ, o = ηq. Eight keys of two registers of rows stay in registers: 3 operations a cell and two
/// broadcasts for both.
template <int Keys> void mamba2(arrays const& a) {
  constexpr int group = 8, packs = Keys / width, abreast = packs % 2 == 0 ? 2 : 1;
  for (std::int64_t head = 0; head < a.heads; ++head) {
    alignas(64) vector eta[packs / abreast][Keys][abreast] = {};
    for (std::int64_t first = 0; first < a.tokens; first += tile) {
      tile_of_head<Keys> x(a, head, first);
      for (int pack = 0; pack < packs; pack += abreast)
        for (int j0 = 0; j0 < Keys; j0 += group) {
          vector e[group][abreast];
          for (int j = 0; j < group; ++j)
            for (int p = 0; p < abreast; ++p) e[j][p] = eta[pack / abreast][j0 + j][p];
          for (int t = 0; t < x.count; ++t) {
            float const alpha = x.alpha[t], *const k = x.key[t] + j0, *const q = x.query[t] + j0;
            auto const* const u = rows_of(x.written[t]) + pack;
            auto* const sum = rows_of(x.sum[t]) + pack;
            vector s[abreast];
            for (int p = 0; p < abreast; ++p) s[p] = sum[p];
            for (int j = 0; j < group; ++j)
              for (int p = 0; p < abreast; ++p) {
                e[j][p] = alpha * e[j][p] + u[p] * k[j];
                s[p] += e[j][p] * q[j];
              }
            for (int p = 0; p < abreast; ++p) sum[p] = s[p];
          }
          for (int j = 0; j < group; ++j)
            for (int p = 0; p < abreast; ++p) eta[pack / abreast][j0 + j][p] = e[j][p];
        }
      x.leave();
    }
  }
}

/// w = β(v - αη k), η ← αη + w kᵀ, o = ηq = α(η q) + w (k·q): the write of a token waits until the next one passes over
/// the cells, so that one pass of 4 operations a cell serves both dot products.
template <int Keys> void gated_delta_net(arrays const& a) {
  constexpr int packs = Keys / width, abreast = packs % 2 == 0 ? 2 : 1, chains = 4;
  for (std::int64_t head = 0; head < a.heads; ++head) {
    alignas(64) vector eta[packs / abreast][Keys][abreast] = {};
    vector waiting[packs] = {};
    float const* waiting_key = a.k + head * Keys;
    float waiting_alpha = 1;
    for (std::int64_t first = 0; first < a.tokens; first += tile) {
      tile_of_head<Keys> x(a, head, first);
      for (int t = 0; t < x.count; ++t) {
        float const *const k = x.key[t], *const q = x.query[t];
        float const alpha = x.alpha[t], decayed_beta = alpha * x.beta[t], key_query = dot<Keys>(k, q);
        for (int pack = 0; pack < packs; pack += abreast) {
          vector seen[chains][abreast] = {}, read[chains][abreast] = {}, w[abreast];
          for (int p = 0; p < abreast; ++p) w[p] = waiting[pack + p];
          auto& e = eta[pack / abreast];
          for (int j = 0; j < Keys; j += chains)
            unroll<chains * abreast>([&](auto i) {
              constexpr int c = i / abreast, p = i % abreast;
              vector const now = waiting_alpha * e[j + c][p] + w[p] * waiting_key[j + c];
              e[j + c][p] = now;
              seen[c][p] += now * k[j + c];
              read[c][p] += now * q[j + c];
            });
          for (int p = 0; p < abreast; ++p) {
            vector const prediction = (seen[0][p] + seen[1][p]) + (seen[2][p] + seen[3][p]);
            vector const sum = (read[0][p] + read[1][p]) + (read[2][p] + read[3][p]);
            vector const write = rows_of(x.written[t])[pack + p] - decayed_beta * prediction;
            waiting[pack + p] = write;
            rows_of(x.sum[t])[pack + p] = alpha * sum + write * key_query;
          }
        }
        waiting_key = k;
        waiting_alpha = alpha;
      }
      x.leave();
    }
  }
}

/// η ← αη + βv kᵀ, J ← αJ + βk², o = Σ ηq/(prior + J). One division for two cells, a/b + c/d = (ad + cb)/(bd), was no
/// faster: multiplications are as short as divisions are.
template <int Keys> void palimpsa(arrays const& a) {
  constexpr int group = 8, packs = Keys / width;
  for (std::int64_t head = 0; head < a.heads; ++head) {
    float const prior = a.prior[head];
    alignas(64) vector eta[packs][Keys] = {};
    alignas(64) vector evidence[packs][Keys] = {};
    for (std::int64_t first = 0; first < a.tokens; first += tile) {
      tile_of_head<Keys> x(a, head, first);
      for (int pack = 0; pack < packs; ++pack)
        for (int j0 = 0; j0 < Keys; j0 += group) {
          vector e[group], J[group];
          for (int j = 0; j < group; ++j) e[j] = eta[pack][j0 + j], J[j] = evidence[pack][j0 + j];
          for (int t = 0; t < x.count; ++t) {
            float const alpha = x.alpha[t], *const k = x.key[t] + j0, *const q = x.query[t] + j0;
            float const* const kk = x.key_squared[t] + j0;
            vector const u = rows_of(x.written[t])[pack];
            auto& sum = rows_of(x.sum[t])[pack];
            vector s = sum;
            for (int j = 0; j < group; ++j) {
              e[j] = alpha * e[j] + u * k[j];
              J[j] = alpha * J[j] + kk[j];
              s += e[j] * q[j] / (prior + J[j]);
            }
            sum = s;
          }
          for (int j = 0; j < group; ++j) eta[pack][j0 + j] = e[j], evidence[pack][j0 + j] = J[j];
        }
      x.leave();
    }
  }
}

}  // namespace bench::by_hand
