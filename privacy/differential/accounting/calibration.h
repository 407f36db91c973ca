// The other way round: how much noise, or how many rounds, a guarantee allows.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "privacy/differential/accounting/accountant.h"
#include "privacy/differential/accounting/guarantee.h"

namespace fedge::privacy {

// Least noise (with_noise()) at which `release` keeps the guarantee, rounded up by at most 1e-6 of itself.
// kInvalid if the guarantee or the mechanism is none, or if no noise below 1e9 is enough.
Result<double> calibrate_noise(const Release& release, const Guarantee& guarantee, AccountantKind kind);

constexpr std::uint64_t kMostRounds = 1'000'000'000;
// How many rounds of the mechanism keep the guarantee, at most kMostRounds; 0 if not even one does. Of a
// tree, how many steps it may have, at most 2^20.
Result<std::uint64_t> allowed_rounds(const Mechanism& mechanism, const Guarantee& guarantee,
                                     AccountantKind kind);

}  // namespace fedge::privacy
