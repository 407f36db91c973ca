// VirtualSecrets: what virtual clients keep for secure aggregation: node keys, the randomness of sessions,
// the sums whose masks they have revealed, and the masks of updates that are not folded yet. Keys and
// randomness come from the run's seed, so nothing here is secret. Masks are added when an update is folded;
// no masked update is kept in memory. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "client/secure/sessions.h"
#include "client/secure/summed_updates.h"
#include "core/crypto/entropy.h"
#include "core/ids.h"
#include "core/rng.h"
#include "protocol/messages.h"
#include "run/run_config.h"

namespace fedge::sim {

class VirtualSecrets {
 public:
  VirtualSecrets(const run::RunConfig& config, std::size_t parameters, Rng rng);

  // What every client knows of the run.
  const std::shared_ptr<const client::MaskedRun>& run() const { return run_; }
  // The client's node key, which the coordinator knows from its link.
  const SecretKey& identity(ClientId client);
  // Different each time that the client begins the session.
  Entropy entropy(ClientId client, const protocol::SecureSession& session);
  // In memory only, but not lost with the client's power.
  client::SummedUpdates& summed_updates(ClientId client) { return clients_[client].summed; }
  // Keeps the masks of the client's update, and describes the masked update in its offer. Adds no scalars:
  // they are masked when the update is folded.
  void mask(ClientId client, privacy::Masking masking, protocol::UpdateOffer& offer);
  // The client's task has ended.
  void forget_masks(ClientId client);
  // The masks of the update that is being folded.
  const privacy::Masking& masking(ClientId client) const { return *clients_.at(client).masking; }

 private:
  struct Client {
    client::SummedUpdates summed = client::SummedUpdates::in_memory();
    std::unique_ptr<const privacy::Masking> masking = nullptr;
    protocol::SecureSession session = {};  // the last one that it has begun
    std::uint64_t times = 0;               // how often
  };
  const run::RunConfig& config_;
  Rng rng_;
  std::shared_ptr<const client::MaskedRun> run_;
  std::map<ClientId, SecretKey> identities_;
  std::map<ClientId, Client> clients_;
};

}  // namespace fedge::sim
