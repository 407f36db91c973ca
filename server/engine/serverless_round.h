// ServerlessRound: a round whose updates stay with the clients. They exchange them among themselves; here it
// is known who takes part, who holds which update, which of them all can aggregate, and which model more than
// half of them have made. The same in the coordinator and in the simulator. Pure, not thread-safe. Memory: a
// few bytes for each update and participant.
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
  // What shells keep to. After this part of a round's time it is late.
  static constexpr double kLate = 0.9;
  // When somebody has gone, chunks that others have just got may not be known yet.
  static constexpr Duration kGrace = seconds(1);

  // `enough`: once so many have offered an update, those who have not are waited for no more.
  explicit ServerlessRound(TaskId task = {}, std::size_t enough = 1) : task_(task), enough_(enough) {}

  TaskId task() const { return task_; }

  // Takes part from now on.
  void join(ClientId client);
  // It is gone, and may come back.
  void expect(ClientId client);
  // They all are.
  void restart();
  bool expects(ClientId client) const { return expected_.contains(client); }
  // It is gone: what it says counts no more. Its own update stays.
  void leave(ClientId client);
  // The same, and it is not expected back: it does without, or has not come back in time.
  void give_up(ClientId client);
  // Whether a client that says or is told this has no part in the round any more.
  bool dismisses(const protocol::Message& message) const;
  const std::set<ClientId>& participants() const { return participants_; }

  // The client has an update, which all are to hold.
  void offer(ClientId client, const protocol::Manifest& update);
  void withdraw(ClientId client) { offers_.erase(client); }
  // All can aggregate it, as had been decided before.
  void settle(ClientId client);
  // Each object that somebody has offered, once; not in the order of the clients.
  std::vector<const protocol::Manifest*> updates() const;
  // Those who are here and have offered one, each update once; and whether these are enough, or nobody else
  // is waited for.
  std::vector<std::pair<ClientId, const protocol::Manifest*>> owners() const;
  bool gathered() const;
  // A participant has all of it, and has looked at it. False if it has been asked for no such thing, or says
  // it again.
  bool answer(ClientId client, const protocol::UpdateHeld& held);

  struct Decision {
    ClientId client;             // whose update it is
    std::optional<Error> fault;  // none: all can aggregate it
    bool lost = false;           // nobody can: its client has gone, and chunks of it with it
  };
  // What can be said of the offers that nothing has been said of. Those who decide are all who have answered
  // or are waited for, also those who are expected back. An update that more than half of them find unsound
  // is refused; one that is not is good when all have answered, and when it is late if more than half of them
  // find it sound. `obtainable` says whether the participants hold all chunks of it between them; asked about
  // the updates of those who have left.
  std::vector<Decision> decide(bool late, const std::function<bool(const protocol::ObjectId&)>& obtainable);
  // It has offered an update of which nothing has been said yet.
  bool undecided(ClientId client) const;

  void fold(const RunEngine::Fold& fold) { folds_.push_back(fold); }
  // --- once the round is closed ---
  // Fixes the voters on the model: the participants that are connected or expected back at this moment.
  void close();
  const std::vector<RunEngine::Fold>& folds() const { return folds_; }
  // What the participants are to do.
  protocol::AggregateUpdates order(RunId run) const;
  // A participant has made this model; false if it has made one before.
  bool made(ClientId client, const protocol::Manifest& model);
  // The model that more than half of those who decide have made. Null: there is none, or not yet.
  const protocol::Manifest* model() const;
  // Whatever those say who have not answered, no model can be that of more than half.
  bool hopeless() const;
  // Why there is no model, or why it is not here although more than half have made it.
  Error no_model(bool fetching) const;
  // Participants that have made another one than this.
  std::vector<ClientId> dissenters(const protocol::ObjectId& model) const;
  // An accepted update's verdict, told when it is known whether the model was made.
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
  // Which model most have made, of those who have made one, and how many these are.
  std::pair<const protocol::Manifest*, std::size_t> most_made() const;
  // What those who decide have said of an update.
  struct Tally {
    std::size_t sound = 0;
    std::size_t unsound = 0;
    std::size_t silent = 0;
    Error fault;  // that the first of the unsound names
    std::size_t heard() const { return sound + unsound; }
    bool is_most(std::size_t number) const { return 2 * number > heard() + silent; }
  };
  Tally tally(const protocol::ObjectId& object) const;
  // Whether what it says of updates is waited for.
  bool waited_for(ClientId client) const { return offers_.size() < enough_ || offers_.contains(client); }

  TaskId task_;
  std::size_t enough_;
  std::set<ClientId> participants_;
  std::set<ClientId> expected_;
  std::map<ClientId, Offer> offers_;
  // The participants' answers about every update offered in the round; a lost one may be offered again.
  std::map<protocol::ObjectId, std::map<ClientId, Answer>> answers_;
  std::vector<RunEngine::Fold> folds_;
  std::optional<std::size_t> voters_;  // who decide on the model: so many
  std::map<ClientId, protocol::Manifest> made_;
};

}  // namespace fedge::server
