// Compiler vectors for one instruction set, and the operations on them that kernels need. Included only by
// body.h, in one .cc for each instruction set and in that set's namespace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace fedge::learn::FEDGE_KERNELS {
namespace {

constexpr std::size_t kLanes = FEDGE_LANES;
using Vector [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(4), gnu::may_alias]] = float;
using Integers [[gnu::vector_size(kLanes * sizeof(float))]] = std::int32_t;

constexpr std::size_t kTileVectors = 2;

inline Vector load(const float* p) { return *reinterpret_cast<const Vector*>(p); }
inline void store(float* p, Vector v) { *reinterpret_cast<Vector*>(p) = v; }
inline Vector broadcast(float x) { return x - Vector{}; }

// Keeps the vector in its register. Otherwise GCC loads it again for each use, and a multiplication waits for
// two loads instead of one.
inline void keep_in_register([[maybe_unused]] Vector& v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#endif
}

// Goes through memory, so that the vectors around it can stay in registers.
[[gnu::noinline]] Vector load_part(const float* p, std::size_t count) {
  float lanes[kLanes] = {};
  __builtin_memcpy(lanes, p, count * sizeof(float));
  return load(lanes);
}
inline void store_part(float* p, Vector v, std::size_t count) {
  __builtin_memcpy(p, &v, count * sizeof(float));
}

// Lanes below `count`, or the last `count`, are -1 and the others 0.
inline Integers first_lanes(std::size_t count) {
  Integers lane{};
  for (std::size_t i = 0; i < kLanes; ++i) lane[i] = i < count ? -1 : 0;
  return lane;
}
inline Integers last_lanes(std::size_t count) {
  Integers lane{};
  for (std::size_t i = 0; i < kLanes; ++i) lane[i] = i + count >= kLanes ? -1 : 0;
  return lane;
}

// Loads the last `count` floats before some end, of which there are at least a vector: like load_part(), but
// without a way through memory.
class TailLoader {
 public:
  explicit TailLoader(std::size_t count) : count_(count), mask_(first_lanes(count)) {
    for (std::size_t i = 0; i < kLanes; ++i)
      places_[i] = static_cast<std::int32_t>((i + kLanes - count) % kLanes);
  }
  Vector operator()(const float* p) const {
#if defined(__GNUC__) && !defined(__clang__)
    Integers bits;
    const Vector turned = __builtin_shuffle(load(p + count_ - kLanes), places_);
    __builtin_memcpy(&bits, &turned, sizeof bits);
    bits &= mask_;
    Vector tail;
    __builtin_memcpy(&tail, &bits, sizeof tail);
    return tail;
#else
    return load_part(p, count_);
#endif
  }

 private:
  std::size_t count_;
  Integers mask_;
  Integers places_{};
};

// take() and put(): a whole vector, or only its first `count` lanes.
template <bool kWhole>
inline Vector take(const float* p, std::size_t count) {
  if constexpr (kWhole) return load(p);
  return load_part(p, count);
}
template <bool kWhole>
inline void put(float* p, Vector v, std::size_t count) {
  if constexpr (kWhole) {
    store(p, v);
  } else {
    store_part(p, v, count);
  }
}

// Calls each(rows, first) for tiles of nearly the same size, at most kMost.
template <std::size_t kMost, class Each>
inline void for_each_tile(std::size_t count, const Each& each) {
  std::size_t first = 0;
  for (std::size_t tiles = (count + kMost - 1) / kMost; tiles > 0; --tiles) {
    const std::size_t rows = (count - first + tiles - 1) / tiles;
    each(rows, first);
    first += rows;
  }
}

// Calls tile(constant) with the constant that equals `rows`.
template <std::size_t kMost, class Tile>
inline void with_rows(std::size_t rows, const Tile& tile) {
  if constexpr (kMost > 0) {
    if (rows == kMost) return tile(std::integral_constant<std::size_t, kMost>{});
    with_rows<kMost - 1>(rows, tile);
  }
}

// Calls visit<whole>(position, count) for each vector of a row; the last one may be partial.
template <class Visit>
inline void for_each_vector(std::size_t width, const Visit& visit) {
  std::size_t i = 0;
  for (; i + kLanes <= width; i += kLanes) visit(std::true_type{}, i, kLanes);
  if (i < width) visit(std::false_type{}, i, width - i);
}

// Lane i of the result is lane places(i) of a and b side by side.
template <class Places, std::size_t... I>
inline Vector shuffle(Vector a, Vector b, Places places, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, static_cast<int>(places(I))...);
}
template <class Places>
inline Vector shuffle(Vector a, Vector b, Places places) {
  return shuffle(a, b, places, std::make_index_sequence<kLanes>{});
}

// Transposes a square of kLanes x kLanes floats: exchanges the blocks beside its diagonal, of ever larger
// size.
template <std::size_t kSize = 1>
inline void transpose(Vector (&rows)[kLanes]) {
  if constexpr (kSize < kLanes) {
    const auto upper = [](std::size_t i) { return i & kSize ? kLanes + i - kSize : i; };
    const auto lower = [](std::size_t i) { return i & kSize ? kLanes + i : i + kSize; };
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kLanes; ++i)
      if ((i & kSize) == 0) {
        const Vector a = rows[i];
        const Vector b = rows[i + kSize];
        rows[i] = shuffle(a, b, upper);
        rows[i + kSize] = shuffle(a, b, lower);
      }
    transpose<2 * kSize>(rows);
  }
}

// The sums of a's and of b's lanes in lanes 0 and 1, always added in the same order.
inline Vector sums(Vector a, Vector b) {
  // Within each four lanes: a0 b0 a1 b1 and a2 b2 a3 b3, one instruction each.
  const auto low = [](std::size_t i) { return i / 4 * 4 + i % 4 / 2 + (i % 2) * kLanes; };
  const auto high = [](std::size_t i) { return i / 4 * 4 + i % 4 / 2 + 2 + (i % 2) * kLanes; };
  Vector total = shuffle(a, b, low) + shuffle(a, b, high);
  if constexpr (kLanes >= 16) total += shuffle(total, total, [](std::size_t i) { return (i + 8) % kLanes; });
  if constexpr (kLanes >= 8) total += shuffle(total, total, [](std::size_t i) { return (i + 4) % kLanes; });
  return total + shuffle(total, total, [](std::size_t i) { return (i + 2) % kLanes; });
}

}  // namespace
}  // namespace fedge::learn::FEDGE_KERNELS
