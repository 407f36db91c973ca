// SecureRound: the coordinator's part of a round's turn whose updates are summed in secret, the same in the
// daemon and in the simulator: passes what members and the session say to each other, tells the engine of
// those who can take no part, sees to it that masked updates fit the session, and keeps accepted updates'
// verdicts until the sum is known. Pure, not thread-safe. Memory: the session's (secure_aggregation/server.h)
// and the scalars of updates on their way.
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
    Digest terms{};  // hash of what clients are told of the run
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
  // A sum over these cells begins.
  struct Open {
    std::vector<Range> cells;
  };
  // close() has come to this: what to take away of the sum, or why nothing can be made of it.
  struct Closed {
    std::optional<privacy::Unmasking> unmasking;
    Error error;
  };
  // The same of a turn that is closed while there is no such round.
  static Closed nothing_to_sum(const RunEngine::CloseRound& turn);
  using Effect = std::variant<Send, Tell, Open, Closed, Event>;

  // `identities` are the node keys of those members that are here; others take no part. `model` is what the
  // members train from.
  SecureRound(const Setup& setup, const RunEngine::BeginSecure& begin, const Digest& model,
              const std::map<ClientId, PublicKey>& identities, Time now);
  // Tells the engine of members that take no part.
  void begin(std::vector<Effect>& effects);

  TaskId task() const { return begin_.task; }
  // Whether a client may send this in a round with secure sums.
  static bool is_about(const protocol::Message& message);
  // False: it is no such message.
  bool receive(ClientId client, const protocol::Message& message, Time now, std::vector<Effect>& effects);
  void left(ClientId client, Time now, std::vector<Effect>& effects);
  void returned(ClientId client, std::vector<Effect>& effects);
  void expired(Time now, std::vector<Effect>& effects);
  std::optional<Time> next_deadline() const;

  // Why this member's masked update cannot be summed, or nothing: then its scalars are kept.
  std::optional<Error> offered(ClientId client, const protocol::UpdateOffer& offer);
  // Its words are being added to the sum.
  std::vector<std::uint64_t> take_scalars(ClientId client);
  // An update is in the aggregate when there is one: until then its client is not told.
  void keep(ClientId client, const protocol::UpdateVerdict& verdict) { kept_[client] = verdict; }
  // The updates that have been folded are all there are: the answer is Closed.
  void close(Time now, std::vector<Effect>& effects);
  // What was kept, and what has become of it.
  std::vector<std::pair<ClientId, protocol::UpdateVerdict>> verdicts(bool summed) const;

 private:
  void carry_on(std::vector<privacy::SecureServer::Effect>& session, std::vector<Effect>& effects);
  Event about_sum(Severity severity, const char* name) const;
  void leave_out(ClientId client, const std::string& reason, std::vector<Effect>& effects) const;
  void end(Error error, std::vector<Effect>& effects);

  Setup setup_;
  RunEngine::BeginSecure begin_;
  std::vector<ClientId> absent_;
  std::optional<privacy::SecureServer> session_;  // none if nobody is here
  bool agreed_ = false;
  bool closing_ = false;
  std::optional<Error> failed_;
  std::map<ClientId, std::vector<std::uint64_t>> scalars_;
  std::vector<ClientId> folded_;
  std::map<ClientId, protocol::UpdateVerdict> kept_;
};

}  // namespace fedge::server
