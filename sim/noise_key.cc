#include "sim/noise_key.h"

#include <string>

#include "core/crypto/sha256.h"
#include "privacy/differential/noise.h"

namespace fedge::sim {

SecretKey noise_key(std::uint64_t seed, std::optional<ClientId> client) {
  const std::string who = client ? "client " + std::to_string(client->value()) : "the coordinator";
  return SecretKey::from_seed(sha256("fedge simulated noise " + std::to_string(seed) + " of " + who));
}

// Uses the key of a coordinator's first run with this machine key.
void take_noise_key(server::RunState& state) {
  const Secret machine(noise_key(state.config().seed).seed());
  state.take_noise_key(privacy::run_noise_root(machine, 1));
}

Secret client_noise_root(std::uint64_t seed, ClientId client) {
  return privacy::run_noise_root(Secret(noise_key(seed, client).seed()), 1);
}

}  // namespace fedge::sim
