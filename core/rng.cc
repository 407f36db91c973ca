#include "core/rng.h"

#include <cmath>
#include <numbers>

#include "core/check.h"

namespace fedge {
namespace {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

std::array<std::uint32_t, 2> split(std::uint64_t value) {
  return {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
}

std::uint64_t join(std::uint32_t low, std::uint32_t high) {
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = 0xD2511F53ULL * counter[0];
    const std::uint64_t product1 = 0xCD9E8D57ULL * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

Rng Rng::fork(std::string_view purpose, std::uint64_t a, std::uint64_t b) const {
  // Chains three blocks, so that every bit of (key, stream, purpose, a, b) affects all 128 bits of the
  // child's name.
  const std::uint64_t words[3] = {fnv1a(purpose), a, b};
  std::uint64_t key = key_;
  std::uint64_t stream = stream_;
  for (const std::uint64_t word : words) {
    const auto block =
        philox4x32({split(stream)[0], split(stream)[1], split(word)[0], split(word)[1]}, split(key));
    key = join(block[0], block[1]);
    stream = join(block[2], block[3]);
  }
  Rng child(key);
  child.stream_ = stream;
  return child;
}

std::uint32_t Rng::next_u32() {
  if (used_ == 4) {
    const auto low = split(block_++);
    const auto high = split(stream_);
    buffer_ = philox4x32({low[0], low[1], high[0], high[1]}, split(key_));
    used_ = 0;
  }
  return buffer_[used_++];
}

std::uint64_t Rng::next_u64() {
  const std::uint32_t low = next_u32();
  return join(low, next_u32());
}

double Rng::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }

std::uint64_t Rng::below(std::uint64_t bound) {
  FEDGE_CHECK(bound > 0, "Rng::below needs a positive bound");
  // Lemire 2019, "Fast random integer generation in an interval".
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next_u64()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = -bound % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>(next_u64()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Rng::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

double Rng::gamma(double shape) {
  FEDGE_CHECK(shape > 0, "Rng::gamma needs a positive shape");
  if (shape < 1.0) return gamma(shape + 1.0) * std::pow(1.0 - uniform(), 1.0 / shape);
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal();
    const double root = 1.0 + c * x;
    if (root <= 0.0) continue;
    const double v = root * root * root;
    if (std::log(1.0 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace fedge
