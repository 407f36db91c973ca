// VirtualSessions: rounds of virtual clients with secure aggregation: the coordinator's own SecureRound and
// the clients' own SecureClient, with real keys, shares and masks, over the simulation's network. Node keys
// and all randomness come from the run's seed, so nothing here is secret. Masks are added when an update is
// folded; no masked update is kept in memory. One thread. Memory: each session client's state about its
// peers.
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
#include "server/engine/secure_round.h"

namespace fedge::sim {

class VirtualSessions {
 public:
  struct Surroundings {
    const run::RunConfig& config;
    std::size_t parameters = 0;
    Rng rng;
    std::function<Time()> now;
    std::function<void(Time, std::function<void()>)> at;
    // Arrival time, at the coordinator, of a message of this size that is sent now.
    std::function<Time(ClientId, Bytes)> up_arrival;
    std::function<std::optional<std::uint32_t>(ClientId)> session;  // connection; none: disconnected
    std::function<void(ClientId, const protocol::Message&)> send;   // from the coordinator
    std::function<void(const server::RunEngine::Input&)> on_input;
    std::function<void(std::vector<Range>)> on_open;
    std::function<void(server::SecureRound::Closed)> on_closed;
    std::function<void(ClientId)> on_ready;                  // the client can mask its update
    std::function<void(ClientId, const Error&)> on_stopped;  // it takes no further part in the session
    std::function<void(const Event&)> on_event;
  };
  explicit VirtualSessions(Surroundings surroundings);

  // --- the coordinator; same calls as SecureRounds ---
  void begin(const server::RunEngine::BeginSecure& begin, const Digest& model);
  void left(ClientId client);
  void returned(ClientId client);
  std::optional<Error> offered(const server::RunEngine::Fetch& fetch);
  void keep(ClientId client, const protocol::UpdateVerdict& verdict) { round_->keep(client, verdict); }
  void close(const server::RunEngine::CloseRound& turn);
  void finish(bool summed);

  // --- clients ---
  // Call it after each step of the client's engine: opens or continues the session for its task, if the task
  // needs one. `asked`: the coordinator has just assigned the task, perhaps again.
  void sync_session(ClientId client, const protocol::TrainRequest* task, bool asked);
  // Returns false if the message does not belong to a session.
  bool hear(ClientId client, const protocol::Message& message);
  bool ready(ClientId client) const;
  // Fills in the offer of the client's masked update.
  void describe(ClientId client, protocol::UpdateOffer& offer) const;
  // The client has offered its update; from now on it may be among the survivors.
  void masked(ClientId client);
  // The masks of the update that is being folded.
  const privacy::Masking& masking(ClientId client) const { return *members_.at(client).masking; }
  void folded(ClientId client) { round_->take_scalars(client); }

 private:
  struct Member {
    std::unique_ptr<privacy::SecureClient> session;
    std::unique_ptr<const privacy::Masking> masking;  // set by masked()
  };
  const SecretKey& identity(ClientId client);
  void carry_out(std::vector<server::SecureRound::Effect>& effects);
  void carry_out(ClientId client, const std::vector<privacy::SecureClient::Effect>& effects);
  void arm();

  Surroundings surroundings_;
  server::SecureRound::Setup setup_;
  std::optional<server::SecureRound> round_;
  std::uint64_t rounds_ = 0;
  std::optional<Time> timer_;
  std::map<ClientId, SecretKey> identities_;
  std::map<ClientId, Member> members_;
};

}  // namespace fedge::sim
