// LocalPrivacySpec: what a client is told of the noise that it adds to its own update before that leaves it:
// section [local_privacy] of the run's description, which the coordinator makes of the run file. Whatever
// somebody makes of one client's updates, the coordinator included, tells of its data at most what
// gaussian_epsilon() of its max_participations updates says. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/config/reader.h"
#include "core/result.h"

namespace fedge::privacy {

struct LocalPrivacySpec {
  double clipping_norm = 1;  // Euclidean, that an update is cut down to
  // Standard deviation of the noise over what an update can change: any of this norm may become any other, so
  // that is twice clipping_norm.
  double noise_multiplier = 1;
  int fraction_bits = 0;                 // an update's values are whole numbers of 2^-fraction_bits
  std::uint32_t max_participations = 1;  // updates of one client in the run
  double delta = 1e-5;
};

// As section [local_privacy], to be read by read_local_privacy().
config::Table to_table(const LocalPrivacySpec& spec);
// Nothing if there is no such section. Errors are left in `root`.
std::optional<LocalPrivacySpec> read_local_privacy(config::Reader& root);

// Updates that were noised alike: the standard deviation of the noise over what an update can change.
struct NoisedUpdates {
  double noise_multiplier = 1;
  std::uint64_t count = 1;
};
// Epsilon of all these updates together at this delta. The noise is accounted for as a continuous Gaussian,
// which a discrete one of hundreds of thousands of units cannot be told from (run/privacy/private_update.h);
// together they are one Gaussian mechanism, with the sum of count / noise_multiplier^2. Errors: see
// Accountant.
Result<double> gaussian_epsilon(std::span<const NoisedUpdates> updates, double delta);

}  // namespace fedge::privacy
