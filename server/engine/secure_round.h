// SecureRound: the coordinator's part in one track phase with a secure sum, the same in the daemon and in
// the simulator. It passes messages between the members and the session. It reports members that cannot
// take part to the engine, checks that masked updates fit the session, and keeps accepting verdicts until
// the sum is known. Pure, not thread-safe. Memory: the session's (secure_aggregation/server.h) and the
// scalars of pending updates.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/event.h"
#include "core/result.h"
#include "core/time.h"
#include "privacy/secure_aggregation/masking_spec.h"
#include "privacy/secure_aggregation/server.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

class SecureRound {
 public:
  struct Setup {
    RunId run;
    Digest terms{};  // hash of the task description that clients receive
    privacy::MaskingSpec masking;
    Duration patience{};
  };
  struct Send {
    ClientId client;
    protocol::Message message;
  };
  struct Tell {
    RunEngine::Input input;
  };
  // Start a sum over these cells.
  struct Open {
    std::vector<Range> cells;
    std::size_t task_sums = 0;
  };
  // Result of close(): the masks to subtract, or the reason there is no sum.
  struct Closed {
    std::optional<privacy::Unmasking> unmasking;
    Error error;
  };
  // Returns the result for a phase that is closed without a session.
  static Closed nothing_to_sum(const RunEngine::CloseRound& turn);
  using Effect = std::variant<Send, Tell, Open, Closed, Event>;

  // `identities` are the node keys of the connected members; other members take no part. `model` is the
  // model that the members train.
  SecureRound(const Setup& setup, const RunEngine::BeginSecure& begin, const Digest& model,
              const std::map<ClientId, PublicKey>& identities, Time now);
  // Reports members that take no part to the engine.
  void begin(std::vector<Effect>& effects);

  TaskId task() const { return begin_.task; }
  std::uint32_t attempt() const { return begin_.attempt; }
  // What the session does; nothing if no member is connected.
  std::optional<privacy::SecureServer::Progress> progress() const {
    return session_ ? std::optional(session_->progress()) : std::nullopt;
  }
  // Returns whether the message belongs to secure aggregation.
  static bool is_about(const protocol::Message& message);
  // Returns false if the message does not belong to secure aggregation.
  bool receive(ClientId client, const protocol::Message& message, Time now, std::vector<Effect>& effects);
  void left(ClientId client, Time now, std::vector<Effect>& effects);
  void returned(ClientId client, std::vector<Effect>& effects);
  void expired(Time now, std::vector<Effect>& effects);
  std::optional<Time> next_deadline() const;

  // Returns why the member's masked update cannot be summed; if nothing, its scalars are kept.
  std::optional<Error> offered(ClientId client, const protocol::UpdateOffer& offer);
  // Returns the scalars of a masked update whose words are about to be added to the sum.
  std::vector<std::uint64_t> take_scalars(ClientId client);
  // Keeps an accepting verdict until the sum is known: without a sum the update counts for nothing.
  void keep(ClientId client, const protocol::UpdateVerdict& verdict) { kept_[client] = verdict; }
  // Ends the phase with the updates folded so far; the answer is Closed.
  void close(Time now, std::vector<Effect>& effects);
  // Returns the kept verdicts, as refusals unless `summed`.
  std::vector<std::pair<ClientId, protocol::UpdateVerdict>> verdicts(bool summed) const;

 private:
  void carry_on(std::vector<privacy::SecureServer::Effect>& session, std::vector<Effect>& effects);
  Event about_sum(Severity severity, const char* name) const;
  void leave_out(ClientId client, const std::string& reason, std::vector<Effect>& effects) const;
  void end(Error error, std::vector<Effect>& effects);

  Setup setup_;
  RunEngine::BeginSecure begin_;
  std::vector<ClientId> absent_;
  std::optional<privacy::SecureServer> session_;  // none if no member is connected
  bool agreed_ = false;
  bool closing_ = false;
  std::optional<Error> failed_;
  std::map<ClientId, std::vector<std::uint64_t>> scalars_;
  std::vector<ClientId> folded_;
  std::map<ClientId, protocol::UpdateVerdict> kept_;
};

}  // namespace fedge::server
