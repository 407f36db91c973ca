#include "sim/noise_key.h"

#include <string>

#include "core/crypto/sha256.h"

namespace fedge::sim {

SecretKey noise_key(std::uint64_t seed, std::optional<ClientId> client) {
  const std::string who = client ? "client " + std::to_string(client->value()) : "the coordinator";
  return SecretKey::from_seed(sha256("fedge simulated noise " + std::to_string(seed) + " of " + who));
}

}  // namespace fedge::sim
