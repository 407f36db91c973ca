// Where the noise of a simulated run comes from: its seed, so that the same file and seed make the same
// model. Whoever knows the seed knows the noise; that a federation's is a secret is the only difference.
#pragma once

#include <cstdint>
#include <optional>

#include "core/crypto/ed25519.h"
#include "core/ids.h"

namespace fedge::sim {

// Of a client, or of the coordinator.
SecretKey noise_key(std::uint64_t seed, std::optional<ClientId> client = {});

}  // namespace fedge::sim
