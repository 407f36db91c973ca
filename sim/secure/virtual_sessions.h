// VirtualSessions: the virtual clients' part of secure aggregation: the daemon's own SecureClient, with real
// keys, shares and masks. Node keys and all randomness come from the run's seed, so nothing here is secret.
// Masks are added when an update is folded; no masked update is kept in memory. One thread. Memory: each
// session client's state about its peers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "core/rng.h"
#include "privacy/secure_aggregation/client.h"
#include "protocol/messages.h"
#include "run/run_config.h"

namespace fedge::sim {

class VirtualSessions {
 public:
  struct Surroundings {
    const run::RunConfig& config;
    std::size_t parameters = 0;
    Rng rng;
    // Sends from a client to the coordinator.
    std::function<void(ClientId, const protocol::Message&)> send;
    std::function<void(ClientId)> on_ready;                  // the client can mask its update
    std::function<void(ClientId, const Error&)> on_stopped;  // it takes no further part in the session
    std::function<void(const Event&)> on_event;
  };
  explicit VirtualSessions(Surroundings surroundings);

  // The client's node key, which the coordinator knows from its link.
  const SecretKey& identity(ClientId client);
  struct Task {
    const protocol::TrainRequest* request;  // null without a task
    bool asked = false;                     // the coordinator has just assigned it, perhaps again
    bool update_kept = false;               // the masked update is on the disk
  };
  // Call it after each step of the client's engine: opens or continues the session for its task, if the task
  // needs one.
  void sync_session(ClientId client, const Task& task);
  // The device lost power, and with it the secrets of its session. A masked update stays on its disk, but the
  // client cannot help to remove its masks.
  void lose_secrets(ClientId client);
  // Returns false if the message does not belong to a session.
  bool hear(ClientId client, const protocol::Message& message);
  bool ready(ClientId client) const;
  // Fills in the offer of the client's masked update.
  void describe(ClientId client, protocol::UpdateOffer& offer) const;
  // The client has offered its update; from now on it may be among the survivors.
  void masked(ClientId client);
  // The masks of the update that is being folded.
  const privacy::Masking& masking(ClientId client) const { return *members_.at(client).masking; }

 private:
  struct Member {
    std::unique_ptr<privacy::SecureClient> session;   // null if its secrets are lost
    std::unique_ptr<const privacy::Masking> masking;  // set by masked()
  };
  // How often a client has begun a session; each time with other secrets.
  struct Begun {
    protocol::SecureSession session;
    std::uint64_t times = 0;
  };
  // Null without a session.
  privacy::SecureClient* session_of(ClientId client) const;
  Entropy secrets_of(ClientId client, const protocol::SecureSession& session);
  void carry_out(ClientId client, const std::vector<privacy::SecureClient::Effect>& effects);

  Surroundings surroundings_;
  Digest terms_{};  // hash of the run's description
  std::map<ClientId, SecretKey> identities_;
  std::map<ClientId, Member> members_;
  std::map<ClientId, Begun> begun_;
};

}  // namespace fedge::sim
