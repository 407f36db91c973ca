// Calibration: the noise or the number of rounds that a guarantee allows.
#pragma once

#include <cstdint>
#include <span>

#include "core/result.h"
#include "privacy/differential/accounting/accountant.h"
#include "privacy/differential/accounting/guarantee.h"

namespace fedge::privacy {

// The least noise (see with_noise()) at which `release`, together with the releases `beside` it, meets the
// guarantee, rounded up by a factor of at most 1 + 1e-6. kInvalid if the guarantee or a mechanism is invalid,
// or if 1e9 is not enough.
Result<double> calibrate_noise(const Release& release, const Guarantee& guarantee, AccountantKind kind,
                               std::span<const Release> beside = {});

constexpr std::uint64_t kMostRounds = 1'000'000'000;
// The largest number of rounds of the mechanism that, together with the releases `beside` them, meets the
// guarantee, at most kMostRounds; 0 if a single round does not. For a tree: the largest number of its steps,
// at most 2^20.
Result<std::uint64_t> allowed_rounds(const Mechanism& mechanism, const Guarantee& guarantee,
                                     AccountantKind kind, std::span<const Release> beside = {});

}  // namespace fedge::privacy
