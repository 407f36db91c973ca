// Noise keys of a simulated run, derived from its seed, so that the same file and seed give the same model.
// Anyone who knows the seed knows the noise; in a federation the keys are secret. There is no other
// difference.
#pragma once

#include <cstdint>
#include <optional>

#include "core/crypto/ed25519.h"
#include "core/crypto/secret.h"
#include "core/ids.h"
#include "server/run_state.h"

namespace fedge::sim {

// The machine key for noise of a client, or of the coordinator.
SecretKey noise_key(std::uint64_t seed, std::optional<ClientId> client = {});
// Gives the run's state the coordinator's key for noise and draws. Call it before making the engine.
void take_noise_key(server::RunState& state);
// Root of a client's noise in the run, which counts as the first run of its key.
Secret client_noise_root(std::uint64_t seed, ClientId client);

}  // namespace fedge::sim
