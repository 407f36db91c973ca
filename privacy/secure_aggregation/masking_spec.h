// MaskingSpec: section [masking] of the run's description, which the coordinator derives from the run file
// and sends to clients. It says how values become the integers of the secure sum, and what the session must
// be like.
#pragma once

#include <cstdint>
#include <optional>

#include "core/config/reader.h"
#include "core/result.h"
#include "privacy/differential/noise.h"
#include "privacy/secure_aggregation/session.h"
#include "protocol/chunks/manifest.h"

namespace fedge::privacy {

// The least total noise of the clients that hides one update in the difference of two sums, as a multiple of
// what one update can change: epsilon 10 at delta 1e-5. Sums with less noise are treated as sums without
// noise.
inline constexpr double kHidingNoise = 0.5;
// Minimum standard deviation of one client's noise, in units of the sums. From this value on, a sum of
// discrete Gaussians is indistinguishable from a discrete Gaussian, as the accounting assumes.
inline constexpr double kCoarsestNoise = 64;
// Minimum clipping norm, in units of the sums. Accounting uses this value, since a finer grid costs less. The
// extra cost of Skellam noise over a Gaussian is then negligible.
inline constexpr double kAccountedGrid = 0x1p11;

struct MaskingSpec {
  // With 64-bit words, a sum holds the same integers as without masks. 32-bit words halve the upload, but
  // values are rounded randomly to the precision that 32 bits leave for a sum.
  protocol::Codec codec = protocol::Codec::kMasked64;
  // A value x with weight w is encoded as x * w * 2^fraction_bits.
  int fraction_bits = 28;
  double max_abs = 256;              // upper bound of |x|
  std::uint64_t uniform_weight = 0;  // weight of every update; 0: its number of samples
  std::uint64_t max_weight = 1;      // upper bound of a weight
  // Differential privacy. clipping_norm: Euclidean norm to which updates are clipped; 0: no clipping.
  // noise_multiplier: standard deviation of a client's noise over the clipping norm after rounding; 0: no
  // noise.
  double clipping_norm = 0;
  double noise_multiplier = 0;
  NoiseKind noise = NoiseKind::kGaussian;
  std::uint32_t max_participations = 0;  // with noise: maximum number of the client's updates in the run
  SecureRules rules;

  std::uint64_t weight_of(SampleCount samples) const;
  // The clipping norm in units of the sums; requires uniform_weight.
  double norm_units() const;
};

// Writes section [masking] for read_masking().
config::Table to_table(const MaskingSpec& spec);
// Returns nothing if the section is absent. Errors are left in `root`.
std::optional<MaskingSpec> read_masking(config::Reader& root);

// The largest number of fraction bits for 32-bit words, such that a sum of `updates` updates of at most this
// weight and |value| cannot wrap, however values are rounded. Returns nothing if a step of 2^-bits would
// exceed max_abs / 256.
std::optional<int> fraction_bits_of(std::size_t updates, std::uint64_t max_weight, double max_abs);

}  // namespace fedge::privacy
