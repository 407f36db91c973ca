// Local differential privacy: a client noises its own update before sending it, so it need not trust the
// receiver (Duchi, Jordan, Wainwright, "Local Privacy and Statistical Minimax Rates", FOCS 2013, for the
// model; the mechanism is the Gaussian one on a clipped vector). The daemon and the simulator use the same
// code. Computation only; any thread. Cost: one noise draw for each value.
#pragma once

#include <cstdint>
#include <span>

#include "core/result.h"
#include "privacy/differential/local_privacy.h"
#include "run/privacy/private_sum.h"

namespace fedge::run {

// Clips the values to clipping_norm, rounds them to the spec's grid and adds noise, in place. The results are
// multiples of the grid unit, rounded to single precision beyond 2^24 units (post-processing of noised
// values). Rounding changes a value by at most half a unit, and the noise accounts for it. The same values in
// the same task get the same noise. kInvalid if a value is not finite; kUnsupported if the sampler cannot
// generate this much noise. Returns the update's release id (privacy::release_id).
Result<std::uint64_t> make_private(std::span<float> values, const privacy::LocalPrivacySpec& spec,
                                   const PrivateSum::Noise& noise);

// The finest grid on which the sampler can draw this noise.
int local_fraction_bits(const privacy::LocalPrivacySpec& spec);

}  // namespace fedge::run
