// LocalPrivacySpec: section [local_privacy] of the run's description, which the coordinator derives from the
// run file. It describes the noise that a client adds to its own update before sending it. gaussian_epsilon()
// of max_participations updates bounds what anyone, including the coordinator, can learn from a client's
// updates. Values; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/config/reader.h"
#include "core/result.h"

namespace fedge::privacy {

struct LocalPrivacySpec {
  double clipping_norm = 1;  // Euclidean norm to which an update is clipped
  // Standard deviation of the noise over the sensitivity 2 * clipping_norm: an update of this norm may become
  // any other.
  double noise_multiplier = 1;
  int fraction_bits = 0;                 // values of an update are multiples of 2^-fraction_bits
  std::uint32_t max_participations = 1;  // maximum number of updates of one client in the run
  double delta = 1e-5;
};

// Writes section [local_privacy] for read_local_privacy().
config::Table to_table(const LocalPrivacySpec& spec);
// Returns nothing if the section is absent. Errors are left in `root`.
std::optional<LocalPrivacySpec> read_local_privacy(config::Reader& root);

// Updates with equal noise. noise_multiplier: standard deviation of the noise over the sensitivity.
struct NoisedUpdates {
  double noise_multiplier = 1;
  std::uint64_t count = 1;
};
// Epsilon of all these updates together at this delta. They are one Gaussian mechanism: the values of
// count / noise_multiplier^2 add up. The noise counts as a continuous Gaussian, which is indistinguishable
// from a discrete one of hundreds of thousands of units (run/privacy/private_update.h). Errors: see
// Accountant.
Result<double> gaussian_epsilon(std::span<const NoisedUpdates> updates, double delta);

}  // namespace fedge::privacy
