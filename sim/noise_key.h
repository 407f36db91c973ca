// Where the noise of a simulated run comes from: its seed, so that the same file and seed make the same
// model. Whoever knows the seed knows the noise; that a federation's is a secret is the only difference.
#pragma once

#include <cstdint>
#include <optional>

#include "core/crypto/ed25519.h"
#include "core/crypto/secret.h"
#include "core/ids.h"
#include "server/run_state.h"

namespace fedge::sim {

// Of a client, or of the coordinator.
SecretKey noise_key(std::uint64_t seed, std::optional<ClientId> client = {});
// Gives the run's state the key of the coordinator's noise and draws; before its engine is made.
void take_noise_key(server::RunState& state);
// What a client's noise in the run goes by: it is the first of its runs.
Secret client_noise_root(std::uint64_t seed, ClientId client);

}  // namespace fedge::sim
