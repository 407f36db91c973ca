#include "privacy/differential/noise.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/check.h"
#include "core/crypto/hkdf.h"
#include "core/crypto/random.h"
#include "core/crypto/sha256.h"
#include "privacy/differential/skellam.h"

namespace fedge::privacy {
namespace {

// Number of values that one stream is used for.
constexpr std::size_t kStretch = std::size_t{1} << 14;
constexpr Wide kMostRatio = Wide{1} << 100;
unsigned bits_of(Wide value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return high != 0 ? 64U + static_cast<unsigned>(std::bit_width(high))
                   : static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(value)));
}

// Requires numerator <= denominator. Draw k succeeds with probability ratio / k. The number of successes
// before the first failure is even with probability exp(-ratio) (algorithm 1).
bool bernoulli_exp_of_fraction(Wide numerator, Wide denominator, NoiseStream& stream) {
  std::uint64_t k = 1;
  while (stream.below(denominator * k) < numerator) ++k;
  return k % 2 == 1;
}

}  // namespace

NoiseStream::NoiseStream(const Secret& key, std::uint64_t part, std::uint64_t stretch)
    : stream_(StreamCipher::kChaCha20) {
  std::array<std::uint8_t, 24> info{'n', 'o', 'i', 's', 'e'};
  for (unsigned i = 0; i < 8; ++i) {
    info.at(8 + i) = static_cast<std::uint8_t>(part >> (8 * i));
    info.at(16 + i) = static_cast<std::uint8_t>(stretch >> (8 * i));
  }
  stream_.start(derive_key(key, {}, info));
}

NoiseStream::~NoiseStream() { wipe(bytes_); }

std::uint64_t NoiseStream::next() {
  if (used_ + sizeof(std::uint64_t) > bytes_.size()) {
    stream_.next(bytes_);
    used_ = 0;
  }
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) value |= std::uint64_t{bytes_.at(used_++)} << (8 * i);
  return value;
}

bool NoiseStream::next_bit() {
  if (left_ == 0) {
    bits_ = next();
    left_ = 64;
  }
  --left_;
  const bool bit = (bits_ & 1) != 0;
  bits_ >>= 1;
  return bit;
}

Wide NoiseStream::below(Wide bound) {
  FEDGE_CHECK(bound > 0, "a positive bound");
  const unsigned bits = bits_of(bound - 1);
  for (;;) {
    Wide value = 0;
    if (bits > 64) value = Wide{next()} << 64;
    if (bits > 0) value |= next();
    if (bits < 128) value &= (Wide{1} << bits) - 1;
    if (value < bound) return value;
  }
}

bool bernoulli_exp(Wide numerator, Wide denominator, NoiseStream& stream) {
  FEDGE_CHECK(denominator > 0 && denominator < kMostRatio && numerator < kMostRatio,
              "a ratio that can be drawn");
  // exp(-a) = exp(-1)^whole * exp(-rest).
  Wide whole = numerator / denominator;
  for (; whole > 0; --whole)
    if (!bernoulli_exp_of_fraction(1, 1, stream)) return false;
  return bernoulli_exp_of_fraction(numerator % denominator, denominator, stream);
}

std::int64_t discrete_laplace(std::uint64_t t, NoiseStream& stream) {
  FEDGE_CHECK(t >= 1 && t < (std::uint64_t{1} << 40), "a scale that can be drawn");
  for (;;) {
    const auto rest = static_cast<std::uint64_t>(stream.below(t));
    if (!bernoulli_exp(rest, t, stream)) continue;
    std::uint64_t whole = 0;
    while (bernoulli_exp(1, 1, stream)) ++whole;
    const auto size = static_cast<std::int64_t>(rest + t * whole);
    const bool negative = stream.next_bit();
    if (negative && size == 0) continue;  // otherwise 0 would be drawn twice as often
    return negative ? -size : size;
  }
}

std::int64_t discrete_gaussian(std::uint64_t variance, NoiseStream& stream) {
  FEDGE_CHECK(variance >= 1 && variance <= kMaxVariance, "a variance that can be drawn");
  // t = floor(sqrt(variance)) + 1, in integer arithmetic.
  std::uint64_t root = std::uint64_t{1} << ((std::bit_width(variance) + 1) / 2);
  while (root * root > variance) root = (root + variance / root) / 2;
  const std::uint64_t t = root + 1;
  for (;;) {
    const std::int64_t drawn = discrete_laplace(t, stream);
    const auto size = static_cast<Wide>(drawn < 0 ? -drawn : drawn);
    // (|y| - variance / t)^2 / (2 variance), as a ratio of integers.
    const Wide scaled = size * t;
    const Wide distance = scaled > variance ? scaled - variance : variance - scaled;
    // Redraws values so far out that their total probability is below 2^-100000, which is undetectable.
    if (distance >= (Wide{1} << 49)) continue;
    if (bernoulli_exp(distance * distance, Wide{2} * variance * t * t, stream)) return drawn;
  }
}

Secret run_noise_root(const Secret& machine, std::uint64_t run) {
  std::array<std::uint8_t, 16> info{'r', 'u', 'n'};
  for (unsigned i = 0; i < 8; ++i) info.at(8 + i) = static_cast<std::uint8_t>(run >> (8 * i));
  return derive_key(machine, {}, info);
}

Secret noise_key(const Secret& root, const NoiseOrder& order, std::span<const std::int64_t> numbers) {
  Sha256 hash;
  hash.add(std::as_bytes(numbers));
  const Digest digest = hash.finish();
  std::array<std::uint8_t, 40> info{'f', 'e', 'd', 'g', 'e', ' ', 'n', 'o', 'i', 's', 'e'};
  info.at(15) = static_cast<std::uint8_t>(order.kind);
  for (unsigned i = 0; i < 8; ++i) {
    info.at(16 + i) = static_cast<std::uint8_t>(std::uint64_t{order.task.round.value()} >> (8 * i));
    info.at(24 + i) = static_cast<std::uint8_t>(std::uint64_t{order.task.track.value()} >> (8 * i));
    info.at(32 + i) = static_cast<std::uint8_t>(order.variance >> (8 * i));
  }
  return derive_key(root, digest, info);
}

std::uint64_t release_id(const Secret& key) {
  constexpr std::array<std::uint8_t, 14> kInfo{'f', 'e', 'd', 'g', 'e', ' ', 'r',
                                               'e', 'l', 'e', 'a', 's', 'e', ' '};
  std::array<std::uint8_t, 8> bytes{};
  hkdf_sha256(key.bytes(), {}, kInfo, bytes);
  std::uint64_t id = 0;
  for (const std::uint8_t byte : bytes) id = id << 8 | byte;
  return id;
}

void add_noise(std::span<std::int64_t> numbers, const AddedNoise& noise, Parallel& parallel) {
  std::optional<Skellam> skellam;
  if (noise.kind == NoiseKind::kSkellam) skellam.emplace(noise.variance);
  parallel.for_each((numbers.size() + kStretch - 1) / kStretch, [&](std::size_t stretch) {
    NoiseStream stream(noise.key, noise.part, stretch);
    const std::size_t first = stretch * kStretch;
    for (std::int64_t& number : numbers.subspan(first, std::min(kStretch, numbers.size() - first))) {
      const std::int64_t drawn = skellam ? skellam->draw(stream) : discrete_gaussian(noise.variance, stream);
      number =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(drawn));
    }
  });
}

std::optional<std::uint64_t> noise_variance(double deviation, NoiseKind kind) {
  const std::uint64_t most = kind == NoiseKind::kSkellam ? Skellam::kMaxVariance : kMaxVariance;
  const double variance = std::ceil(deviation * deviation);
  if (!(variance <= static_cast<double>(most))) return std::nullopt;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(variance));
}

}  // namespace fedge::privacy
