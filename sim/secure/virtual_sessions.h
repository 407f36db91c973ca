// VirtualSessions: rounds of virtual clients whose updates are summed in secret: the coordinator's own
// SecureRound and the clients' own SecureClient, with real keys, shares and masks, over the simulation's
// network. Node keys and all randomness are drawn from the run's seed, so that nothing here is secret. Masks
// are added when an update is folded, so that none lies in memory masked. One thread. Memory: what each
// client in a session knows of its peers.
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
    // When a message that is sent now, of so many bytes, is with the coordinator.
    std::function<Time(ClientId, Bytes)> up_arrival;
    std::function<std::optional<std::uint32_t>(ClientId)> session;  // of its connection; none: it has none
    std::function<void(ClientId, const protocol::Message&)> send;   // from the coordinator
    std::function<void(const server::RunEngine::Input&)> on_input;
    std::function<void(std::vector<Range>)> on_open;
    std::function<void(server::SecureRound::Closed)> on_closed;
    std::function<void(ClientId)> on_ready;                  // the client can mask its update
    std::function<void(ClientId, const Error&)> on_stopped;  // it takes no further part
    std::function<void(const Event&)> on_event;
  };
  explicit VirtualSessions(Surroundings surroundings);

  // --- the coordinator; as SecureRounds ---
  void begin(const server::RunEngine::BeginSecure& begin, const Digest& model);
  void left(ClientId client);
  void returned(ClientId client);
  std::optional<Error> offered(const server::RunEngine::Fetch& fetch);
  void keep(ClientId client, const protocol::UpdateVerdict& verdict) { round_->keep(client, verdict); }
  void close(const server::RunEngine::CloseRound& turn);
  void finish(bool summed);

  // --- clients ---
  // After each of its engine's steps: a session for its task in hand, if that is to have one. `asked`: the
  // coordinator has just asked for it, perhaps again.
  void sync_session(ClientId client, const protocol::TrainRequest* task, bool asked);
  // False: the message is no matter of a session.
  bool hear(ClientId client, const protocol::Message& message);
  bool ready(ClientId client) const;
  // What an update looks like that is masked as agreed on.
  void describe(ClientId client, protocol::UpdateOffer& offer) const;
  // It is offered: from now on it may be among the survivors.
  void masked(ClientId client);
  // For the update that is being folded.
  const privacy::Masking& masking(ClientId client) const { return *members_.at(client).masking; }
  void folded(ClientId client) { round_->take_scalars(client); }

 private:
  struct Member {
    std::unique_ptr<privacy::SecureClient> session;
    std::unique_ptr<const privacy::Masking> masking;  // once it is masked
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
