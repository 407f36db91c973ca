// The kernels of convolutions whose outputs are pooled. Included only by body.h, like vectors.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learn/kernels/kernels.h"
#include "learn/kernels/vectors.h"

namespace fedge::learn::FEDGE_KERNELS {
namespace {

// Pools one vector of channels, or a part of one, of one pixel; `four` are the pixel's four inputs.
template <bool kWhole>
inline void pool_vector(const float* const (&four)[4], std::size_t i, float* output, std::int32_t* winners,
                        std::size_t count) {
  const Vector a = load(four[0] + i);
  const Vector b = load(four[1] + i);
  const Vector c = load(four[2] + i);
  const Vector d = load(four[3] + i);
  const Integers zero{};
  const Vector upper = b > a ? b : a;
  const Vector lower = d > c ? d : c;
  const Integers upper_winner = b > a ? zero + 1 : zero;
  const Integers lower_winner = d > c ? zero + 3 : zero + 2;
  const Integers winner = lower > upper ? lower_winner : upper_winner;
  const Vector largest = lower > upper ? lower : upper;
  put<kWhole>(output + i, largest > 0.0F ? largest : Vector{}, count);
  __builtin_memcpy(winners + i, &winner, kWhole ? sizeof winner : count * sizeof(std::int32_t));
}

void pool(const PoolShape& s, const float* y, float* output, std::int32_t* winners) {
  const std::size_t line = s.width * s.stride;
  for (std::size_t row = 0; row < s.height / 2; ++row, y += 2 * line)
    for (std::size_t column = 0; column < s.width / 2; ++column, output += s.out, winners += s.out) {
      const float* corner = y + 2 * column * s.stride;
      const float* const four[4] = {corner, corner + s.stride, corner + line, corner + line + s.stride};
      std::size_t i = 0;
      for (; i + kLanes <= s.out; i += kLanes) pool_vector<true>(four, i, output, winners, kLanes);
      if (i < s.out) pool_vector<false>(four, i, output, winners, s.out - i);
    }
}

// Writes one vector of channels of a pixel's four inputs; lanes beyond `count` get zeros.
template <bool kWhole>
inline void unpool_vector(const float* output, const std::int32_t* winners, const float* dy, std::size_t i,
                          float* const (&four)[4], std::size_t count) {
  const Vector passed = take<kWhole>(output + i, count);
  const Vector gradient = passed > 0.0F ? take<kWhole>(dy + i, count) : Vector{};
  Integers winner{};
  __builtin_memcpy(&winner, winners + i, kWhole ? sizeof winner : count * sizeof(std::int32_t));
  for (std::int32_t k = 0; k < 4; ++k) store(four[k] + i, winner == k ? gradient : Vector{});
}

void unpool(const PoolShape& s, const float* output, const std::int32_t* winners, const float* dy, float* y) {
  const std::size_t line = s.width * s.stride;
  for (std::size_t row = 0; row < s.height / 2; ++row, y += 2 * line)
    for (std::size_t column = 0; column < s.width / 2;
         ++column, output += s.out, winners += s.out, dy += s.out) {
      float* corner = y + 2 * column * s.stride;
      float* const four[4] = {corner, corner + s.stride, corner + line, corner + line + s.stride};
      std::size_t i = 0;
      for (; i + kLanes <= s.out; i += kLanes) unpool_vector<true>(output, winners, dy, i, four, kLanes);
      if (i < s.out) unpool_vector<false>(output, winners, dy, i, four, s.out - i);
    }
}

// Adds V vectors of every row's run. Few vectors are summed in several independent chains, since each
// addition waits for the one before it.
template <std::size_t V, std::size_t kChains>
inline void add_terms_part(const TermRows& rows, const float* from, float* to) {
  for (std::size_t r = 0; r < rows.count; ++r) {
    const TermRow row = rows.rows[r];
    Vector acc[kChains][V] = {};
#pragma GCC unroll 16
    for (std::size_t v = 0; v < V; ++v) acc[0][v] = load(to + row.to + v * kLanes);
    std::uint32_t t = 0;
    for (; t + kChains <= row.count; t += kChains)
#pragma GCC unroll 16
      for (std::size_t c = 0; c < kChains; ++c) {
        const Term& term = row.terms[t + c];
        const Vector factor = broadcast(term.factor);
#pragma GCC unroll 16
        for (std::size_t v = 0; v < V; ++v) acc[c][v] += factor * load(from + term.from + v * kLanes);
      }
    for (; t < row.count; ++t) {
      const Vector factor = broadcast(row.terms[t].factor);
#pragma GCC unroll 16
      for (std::size_t v = 0; v < V; ++v) acc[0][v] += factor * load(from + row.terms[t].from + v * kLanes);
    }
#pragma GCC unroll 16
    for (std::size_t v = 0; v < V; ++v) {
#pragma GCC unroll 16
      for (std::size_t c = 1; c < kChains; ++c) acc[0][v] += acc[c][v];
      store(to + row.to + v * kLanes, acc[0][v]);
    }
  }
}

void add_terms(const TermRows& rows, const float* from, std::size_t run, float* to) {
  constexpr std::size_t kVectors = 10;
  std::size_t i = 0;
  for (; i + kVectors * kLanes <= run; i += kVectors * kLanes)
    add_terms_part<kVectors, 1>(rows, from + i, to + i);
  // The last vectors together, if they are more than one: each term is then read once for all of them.
  switch ((run - i + kLanes - 1) / kLanes) {
    case 0:
      return;
    case 1:
      return add_terms_part<1, 8>(rows, from + i, to + i);
    case 2:
      return add_terms_part<2, 4>(rows, from + i, to + i);
    case 3:
      return add_terms_part<3, 4>(rows, from + i, to + i);
    case 4:
      return add_terms_part<4, 2>(rows, from + i, to + i);
    case 5:
      return add_terms_part<5, 2>(rows, from + i, to + i);
    case 6:
      return add_terms_part<6, 2>(rows, from + i, to + i);
    case 7:
      return add_terms_part<7, 1>(rows, from + i, to + i);
    case 8:
      return add_terms_part<8, 1>(rows, from + i, to + i);
    case 9:
      return add_terms_part<9, 1>(rows, from + i, to + i);
    default:
      return add_terms_part<10, 1>(rows, from + i, to + i);
  }
}

}  // namespace
}  // namespace fedge::learn::FEDGE_KERNELS
