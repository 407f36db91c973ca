// Local differential privacy: what a client does to its own update before that leaves it, so that it need not
// trust whoever gets it (Duchi, Jordan, Wainwright, "Local Privacy and Statistical Minimax Rates", FOCS 2013,
// for the model; the mechanism is the Gaussian one on a clipped vector). The same in the daemon and in the
// simulator. Computation only; any thread. Cost: a draw of noise for each value.
#pragma once

#include <cstdint>
#include <span>

#include "core/result.h"
#include "privacy/differential/local_privacy.h"
#include "run/privacy/private_sum.h"

namespace fedge::run {

// Cut down to clipping_norm, rounded to whole units of the spec's grid and noised, in place: what is left are
// multiples of the unit (rounded to single precision where they are beyond 2^24 units, which is made of
// noised numbers alone). One value's rounding changes the norm by half a unit at most, and the noise is as
// much more. The same values in the same task have the same noise. kInvalid if a value is not finite;
// kUnsupported if the noise is more than the sampler makes.
// What is given back is what the update is known by (privacy::release_id).
Result<std::uint64_t> make_private(std::span<float> values, const privacy::LocalPrivacySpec& spec,
                                   const PrivateSum::Noise& noise);

// The grid on which this noise is as fine as it can be drawn.
int local_fraction_bits(const privacy::LocalPrivacySpec& spec);

}  // namespace fedge::run
