// ServerlessRound: the state of a serverless round, in which clients keep and exchange the updates. It
// records who takes part, who holds which update, which updates all can aggregate, and which model more
// than half of the clients aggregated. The same in the coordinator and in the simulator. Pure, not
// thread-safe. Memory: a few bytes for each update and participant.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "protocol/messages.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

class ServerlessRound {
 public:
  // Fraction of the round's deadline after which decide() gets `late`; for all I/O adapters.
  static constexpr double kLate = 0.9;
  // Delay after a disconnect, in which the others report chunks they just received.
  static constexpr Duration kGrace = seconds(1);

  // `enough`: once this many clients have offered updates, the round does not wait for reports of the
  // others.
  explicit ServerlessRound(TaskId task = {}, std::size_t enough = 1) : task_(task), enough_(enough) {}

  TaskId task() const { return task_; }

  // The client takes part from now on.
  void join(ClientId client);
  // The client disconnected and may return.
  void expect(ClientId client);
  // All clients disconnected and may return.
  void restart();
  bool expects(ClientId client) const { return expected_.contains(client); }
  // The client left: its reports no longer count. Its update stays.
  void leave(ClientId client);
  // The client left and is not awaited: it lost its task or did not return in time.
  void give_up(ClientId client);
  // Returns whether this message, from or to a client, ends its part in the round.
  bool dismisses(const protocol::Message& message) const;
  const std::set<ClientId>& participants() const { return participants_; }

  // The client offers an update, which all participants are to hold.
  void offer(ClientId client, const protocol::Manifest& update);
  void withdraw(ClientId client) { offers_.erase(client); }
  // Marks the client's update as accepted, as decided by an earlier process.
  void settle(ClientId client);
  // Returns each offered object once, in an order that does not depend on the clients.
  std::vector<const protocol::Manifest*> updates() const;
  // owners() returns the connected clients with an offer, one for each object. gathered() returns whether
  // these are enough, or no other client is awaited.
  std::vector<std::pair<ClientId, const protocol::Manifest*>> owners() const;
  bool gathered() const;
  // Records that a participant holds and has checked an update. Returns false if the update was not offered
  // or the participant has already reported.
  bool answer(ClientId client, const protocol::UpdateHeld& held);

  struct Decision {
    ClientId client;             // owner of the update
    std::optional<Error> fault;  // why it is refused; none: accepted
    bool lost = false;           // its client left before the others held all chunks
  };
  // Decides about offers without a decision. The voters on an update are all clients that reported on it or
  // are awaited, including those expected back. A decision needs a report of every voter or, if `late`, a
  // majority. An update is refused if more than half of its voters find it invalid, else accepted. If the
  // owner has left and not all reports are in, `obtainable` tells whether the participants together hold
  // all chunks; if not, the update is lost.
  std::vector<Decision> decide(bool late, const std::function<bool(const protocol::ObjectId&)>& obtainable);
  // Returns whether the client's offer awaits a decision.
  bool undecided(ClientId client) const;

  void fold(const RunEngine::Fold& fold) { folds_.push_back(fold); }
  // --- once the round is closed ---
  // Fixes the voters on the model: the participants that are connected or expected back at this moment.
  void close();
  const std::vector<RunEngine::Fold>& folds() const { return folds_; }
  // Returns the order that tells the participants what to aggregate.
  protocol::AggregateUpdates order(RunId run) const;
  // Records the model that a participant aggregated; false if it is a second one, or the client does not
  // take part.
  bool made(ClientId client, const protocol::Manifest& model);
  // Returns the model that more than half of the voters aggregated, or null if there is none (yet).
  const protocol::Manifest* model() const;
  // Returns whether no model can still reach a majority.
  bool hopeless() const;
  // Returns why there is no model, or with `fetching` why a model with a majority could not be fetched.
  Error no_model(bool fetching) const;
  // Returns the participants that aggregated another model than this.
  std::vector<ClientId> dissenters(const protocol::ObjectId& model) const;
  // Returns the verdict on an accepted update: a refusal unless a model was aggregated.
  static protocol::UpdateVerdict verdict(protocol::UpdateVerdict accepted, bool made);

 private:
  struct Offer {
    protocol::Manifest update;
    protocol::ObjectId object{};
    bool decided = false;
  };
  struct Answer {
    bool sound = true;
    Error fault;
  };
  // Returns the most frequent model and the number of clients that aggregated it.
  std::pair<const protocol::Manifest*, std::size_t> most_made() const;
  // The voters' reports on an update.
  struct Tally {
    std::size_t sound = 0;
    std::size_t unsound = 0;
    std::size_t silent = 0;
    Error fault;  // reported by the first client that finds it invalid
    std::size_t heard() const { return sound + unsound; }
    bool is_most(std::size_t number) const { return 2 * number > heard() + silent; }
  };
  Tally tally(const protocol::ObjectId& object) const;
  // Returns whether the round waits for this client's reports.
  bool waited_for(ClientId client) const { return offers_.size() < enough_ || offers_.contains(client); }

  TaskId task_;
  std::size_t enough_;
  std::set<ClientId> participants_;
  std::set<ClientId> expected_;
  std::map<ClientId, Offer> offers_;
  // Reports on every update offered in the round; kept, because a lost update may be offered again.
  std::map<protocol::ObjectId, std::map<ClientId, Answer>> answers_;
  std::vector<RunEngine::Fold> folds_;
  std::optional<std::size_t> voters_;  // number of voters on the model
  std::map<ClientId, protocol::Manifest> made_;
};

}  // namespace fedge::server
