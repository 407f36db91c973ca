// Noise: exact samples of whole numbers for differential privacy, from a cryptographic generator. Nothing
// here computes with floating point: what is released has no low bits that tell of the data (Mironov, "On
// Significance of the Least Significant Bits for Differential Privacy", CCS 2012). Algorithms 1 to 3 of
// Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020): every sample
// has exactly the distribution that is stated. The time that one takes depends on what is drawn, never on
// data. One object a thread. Cost: measured in bench/differential_privacy.
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

// Uniform random numbers: a keystream under a key that nobody else has. Key, part and stretch give the same
// numbers in every process.
class NoiseStream {
 public:
  NoiseStream(const Secret& key, std::uint64_t part, std::uint64_t stretch);
  ~NoiseStream();
  NoiseStream(const NoiseStream&) = delete;
  NoiseStream& operator=(const NoiseStream&) = delete;

  std::uint64_t next();
  bool next_bit();
  // Uniform in [0, bound), by rejection; bound is not 0.
  Wide below(Wide bound);

 private:
  Keystream stream_;
  std::array<std::uint8_t, 4096> bytes_{};
  std::size_t used_ = sizeof(bytes_);
  std::uint64_t bits_ = 0;
  unsigned left_ = 0;  // of bits_
};

// True with probability exp(-numerator / denominator); both below 2^100, the denominator not 0.
bool bernoulli_exp(Wide numerator, Wide denominator, NoiseStream& stream);

// P[x] = (1 - e^(-1/t)) / (1 + e^(-1/t)) e^(-|x|/t); 1 <= t < 2^40.
std::int64_t discrete_laplace(std::uint64_t t, NoiseStream& stream);

// P[x] proportional to exp(-x^2 / (2 variance)) over all whole numbers x; 1 <= variance <= kMaxVariance.
// Variance and standard deviation are at most those of the continuous one.
inline constexpr std::uint64_t kMaxVariance = std::uint64_t{1} << 40;
std::int64_t discrete_gaussian(std::uint64_t variance, NoiseStream& stream);

// Where the noise of a machine's n-th run comes from.
Secret run_noise_root(const Secret& machine, std::uint64_t run);

enum class NoiseKind : std::uint8_t { kGaussian = 0, kSkellam = 1 };
struct NoiseOrder {
  TaskId task;
  std::uint64_t variance = 1;
  NoiseKind kind = NoiseKind::kGaussian;
};
// The key of the noise that is added to these numbers in this task. The same numbers have the same noise when
// they are made once more, so that nobody can take the mean of several. Other numbers, as after a backup was
// restored, have other noise, so that nobody can take their difference. More or less noise of the same
// numbers is another release, and counts as one.
Secret noise_key(const Secret& root, const NoiseOrder& order, std::span<const std::int64_t> numbers);
// What numbers that were noised with this key are known by; says nothing of the key.
std::uint64_t release_id(const Secret& key);

struct AddedNoise {
  const Secret& key;
  std::uint64_t variance = 1;
  std::uint64_t part = 0;  // of several vectors of one key
  NoiseKind kind = NoiseKind::kGaussian;
};
// Adds noise to each number, modulo 2^64. What it draws depends on the noise and the number's place alone.
void add_noise(std::span<std::int64_t> numbers, const AddedNoise& noise, Parallel& parallel);
// The least whole variance of a standard deviation of at least so many units; nothing if that is beyond what
// can be drawn.
std::optional<std::uint64_t> noise_variance(double deviation, NoiseKind kind = NoiseKind::kGaussian);

}  // namespace fedge::privacy
