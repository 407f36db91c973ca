// Noise: exact integer samples for differential privacy from a cryptographic generator. No floating point is
// used, so that released values have no low bits that reveal data (Mironov, "On Significance of the Least
// Significant Bits for Differential Privacy", CCS 2012). Uses algorithms 1 to 3 of Canonne, Kamath and
// Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020); every sample has exactly the
// stated distribution. The time of a draw depends on the drawn value, never on data. Not thread-safe: one
// NoiseStream per thread. Cost: see bench/differential_privacy.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "core/crypto/keystream.h"
#include "core/crypto/secret.h"
#include "core/ids.h"
#include "core/parallel.h"

namespace fedge::privacy {

__extension__ using Wide = unsigned __int128;

// Uniform random numbers: a keystream under a secret key. The same key, part and stretch give the same
// numbers in every process.
class NoiseStream {
 public:
  NoiseStream(const Secret& key, std::uint64_t part, std::uint64_t stretch);
  ~NoiseStream();
  NoiseStream(const NoiseStream&) = delete;
  NoiseStream& operator=(const NoiseStream&) = delete;

  std::uint64_t next();
  bool next_bit();
  // Uniform in [0, bound), by rejection; bound must not be 0.
  Wide below(Wide bound);

 private:
  Keystream stream_;
  std::array<std::uint8_t, 4096> bytes_{};
  std::size_t used_ = sizeof(bytes_);
  std::uint64_t bits_ = 0;
  unsigned left_ = 0;  // unused bits in bits_
};

// True with probability exp(-numerator / denominator). Both are below 2^100; the denominator is not 0.
bool bernoulli_exp(Wide numerator, Wide denominator, NoiseStream& stream);

// P[x] = (1 - e^(-1/t)) / (1 + e^(-1/t)) e^(-|x|/t); 1 <= t < 2^40.
std::int64_t discrete_laplace(std::uint64_t t, NoiseStream& stream);

// P[x] proportional to exp(-x^2 / (2 variance)) over all integers x; 1 <= variance <= kMaxVariance. Its
// variance is at most that of the continuous Gaussian.
inline constexpr std::uint64_t kMaxVariance = std::uint64_t{1} << 40;
std::int64_t discrete_gaussian(std::uint64_t variance, NoiseStream& stream);

// The root key of all noise in a machine's run.
Secret run_noise_root(const Secret& machine, std::uint64_t run);

enum class NoiseKind : std::uint8_t { kGaussian = 0, kSkellam = 1 };
struct NoiseOrder {
  TaskId task;
  std::uint64_t variance = 1;
  NoiseKind kind = NoiseKind::kGaussian;
};
// The key of the noise that this task adds to these numbers. Equal numbers get equal noise if they are
// released again, so that averaging several releases does not help. Different numbers, for example after a
// backup was restored, get different noise, so that their difference does not reveal data. Equal numbers with
// another variance are another release and are counted as such.
Secret noise_key(const Secret& root, const NoiseOrder& order, std::span<const std::int64_t> numbers);
// An identifier of the release that was noised with this key; it reveals nothing about the key.
std::uint64_t release_id(const Secret& key);

struct AddedNoise {
  const Secret& key;
  std::uint64_t variance = 1;
  std::uint64_t part = 0;  // number of the vector, if several share a key
  NoiseKind kind = NoiseKind::kGaussian;
};
// Adds noise to each number, modulo 2^64. The noise depends only on `noise` and the number's position.
void add_noise(std::span<std::int64_t> numbers, const AddedNoise& noise, Parallel& parallel);
// The least integer variance with a standard deviation of at least `deviation` units; nothing if that is
// beyond what can be drawn.
std::optional<std::uint64_t> noise_variance(double deviation, NoiseKind kind = NoiseKind::kGaussian);

}  // namespace fedge::privacy
