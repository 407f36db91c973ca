// MaskingSpec: what a client is told of a run's secure aggregation: section [masking] of the run's
// description, which the coordinator makes of the run file. How values become the integers that are summed in
// secret, and what the session must be like.
#pragma once

#include <cstdint>
#include <optional>

#include "core/config/reader.h"
#include "core/result.h"
#include "privacy/differential/noise.h"
#include "privacy/secure_aggregation/session.h"
#include "protocol/chunks/manifest.h"

namespace fedge::privacy {

// The least noise of the clients, its standard deviation over what one update can change, that hides an
// update where two sums differ by it: epsilon 10 at delta 1e-5. With less, sums count as sums without noise.
inline constexpr double kHidingNoise = 0.5;
// What clients' noises are accounted for by holds from these on. Standard deviation of one's, in units of the
// sums: then the sum of discrete Gaussians cannot be told from one.
inline constexpr double kCoarsestNoise = 64;
// Units of the norm; so many are accounted for, which is the worse case. What Skellam costs beyond a Gaussian
// is next to nothing there.
inline constexpr double kAccountedGrid = 0x1p11;

struct MaskingSpec {
  // Words of 64 bits hold the very integers of the sums that are made without masks. Those of 32 are half as
  // long, and values are rounded at random to what so few bits can hold of a sum.
  protocol::Codec codec = protocol::Codec::kMasked64;
  // A value x of weight w is x * w * 2^fraction_bits.
  int fraction_bits = 28;
  double max_abs = 256;              // largest |x|
  std::uint64_t uniform_weight = 0;  // of every update; 0: its samples
  std::uint64_t max_weight = 1;      // more samples count as so many
  // With differential privacy: the Euclidean norm that updates are cut down to (0: they are not), and the
  // standard deviation of the noise that each client adds, over that norm as rounding leaves it (0: none).
  double clipping_norm = 0;
  double noise_multiplier = 0;
  NoiseKind noise = NoiseKind::kGaussian;
  std::uint32_t max_participations = 0;  // where it adds some: its updates in the run, at most
  SecureRules rules;

  std::uint64_t weight_of(SampleCount samples) const;
  // The clipping norm in units of the sums, where every update weighs the same.
  double norm_units() const;
};

// As section [masking], to be read by read_masking().
config::Table to_table(const MaskingSpec& spec);
// Nothing if there is no such section. Errors are left in `root`.
std::optional<MaskingSpec> read_masking(config::Reader& root);

// How many bits after the binary point words of 32 bits have room for: so many updates of at most this weight
// and |value| may be summed, and no sum wraps, however values are rounded. Nothing if that is less than one
// 256th of max_abs.
std::optional<int> fraction_bits_of(std::size_t updates, std::uint64_t max_weight, double max_abs);

}  // namespace fedge::privacy
