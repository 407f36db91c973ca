// Rng: counter-based random numbers (Philox4x32-10; Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011). Streams have names: fork("shuffle", round, client) gives the same numbers on any thread and
// machine, independently of earlier draws. Not for secrets: keys and tokens come from core/crypto/random.h.
// Copyable, 48 bytes, no heap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace fedge {

// One Philox4x32-10 block: the published bijection, exposed for its known-answer test.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : key_(seed) {}

  // An independent stream: a pure function of this stream's name (not of its position) and the arguments.
  Rng fork(std::string_view purpose, std::uint64_t a = 0, std::uint64_t b = 0) const;

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  // Uniform in [0, 1), 53 bits.
  double uniform();
  // Uniform integer in [0, bound), without bias; bound must be positive.
  std::uint64_t below(std::uint64_t bound);
  // Standard normal (Box-Muller).
  double normal();
  // Gamma with the given shape > 0 and scale 1 (Marsaglia and Tsang 2000; boosted below shape 1).
  double gamma(double shape);

  // Fisher-Yates shuffle.
  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t key_ = 0;
  std::uint64_t stream_ = 0;  // upper half of the counter
  std::uint64_t block_ = 0;   // lower half of the counter
  std::array<std::uint32_t, 4> buffer_{};
  std::uint32_t used_ = 4;  // used words of buffer_
};

}  // namespace fedge
