// ServerlessRoute: the coordinator's part in the rounds of a serverless run. Clients keep, exchange and
// aggregate the updates. The route announces updates, collects reports about them, and fetches the model
// that more than half of the clients aggregated. To the engine, an update that enough clients hold is stored.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "server/conductor/full_disk.h"
#include "server/conductor/route.h"
#include "server/engine/serverless_round.h"
#include "server/engine/serverless_warmup.h"

namespace fedge::server {

class ServerlessRoute final : public Route {
 public:
  explicit ServerlessRoute(const RouteParts& parts) : parts_(parts) {}

  void assigned(const RunEngine::Assign& work, const protocol::Manifest& model) override;
  // Watches the update and announces it to the participants.
  void fetch(const RunEngine::Fetch& offered) override;
  void discard(ClientId client, TaskId) override { round_.withdraw(client); }
  void fold(const RunEngine::Fold& accepted) override;
  // Without an aggregate the update counts for nothing.
  bool keep(ClientId client, const protocol::UpdateVerdict& verdict) override;
  void dismissed(ClientId client, const protocol::Message& message) override;
  void given_up(ClientId client) override;
  // Lets the participants aggregate the folded updates, and fetches their model.
  void close(const RunEngine::CloseRound& turn) override;
  bool makes_model() const override { return turn_.has_value(); }
  void committed(bool aggregated) override;
  bool holds(ClientId client) const override { return round_.undecided(client); }
  void left(ClientId client, bool held) override;
  void linked(ClientId client) override;
  // A client that returns while its round is aggregated takes part again.
  void arrived(ClientId client) override;
  Heard receive(ClientId client, const protocol::Message& message) override;
  bool keeps_models() const override { return true; }
  void fetched(const protocol::ObjectId& model, const Result<void>& outcome) override;
  void expired() override;
  std::optional<Time> next_deadline() const override;
  void stop() override;
  void retell(const RunEngine::Input& input) override;
  void resume() override;

 private:
  enum class Stage { kSharing, kMaking, kMade };

  void begin(TaskId task, const protocol::Manifest& model);
  void plan_warmup();
  void begin_warmup();
  void go_on_warming();
  void end_warmup();
  // Continues the warm-up, at its next time.
  void warm();
  // Whether messages about this task come too late.
  bool is_over(TaskId task) const { return task != round_.task() || stage_ == Stage::kMade; }
  // Whether updates are exchanged freely.
  bool exchanging() const { return !warmup_ || warmup_->over(); }
  void tell(ClientId client, const protocol::Manifest& update);
  void tell_all(ClientId client);
  // Decides about offered updates.
  void look();
  void go_on();
  void arm(Duration time);
  void look_again_after(Duration time);
  void choose();
  void fetch(const protocol::Manifest& model);
  // Retries later: an operator may free disk space.
  void wait_for_room();
  void end_making(const Made& made);
  void report_exchange() const;
  std::vector<ClientId> contributors() const;
  Time now() const { return parts_.host.now(); }
  Exchange& exchange() const { return *parts_.ports.exchange; }

  RouteParts parts_;
  ServerlessRound round_;
  protocol::Manifest model_;                   // model that the round starts from
  std::optional<RunEngine::CloseRound> turn_;  // phase being closed
  std::set<protocol::ObjectId> watched_;
  std::set<ClientId> gone_;  // departures that the engine has not heard of
  std::map<ClientId, protocol::UpdateVerdict> kept_;
  std::optional<ServerlessWarmup> warmup_;  // of this round, if the run has warm-ups
  Time warmup_ends_{};
  Stage stage_ = Stage::kSharing;
  bool late_ = false;
  std::optional<Time> late_at_;
  std::optional<Time> look_at_;
  std::optional<Time> warm_at_;
  Time known_from_{};  // before then, clients may not have reported their chunks
  FullDisk disk_{[this](const Event& event) { parts_.host.report(event); }};
  std::size_t refused_ = 0;  // updates of this round
  std::size_t lost_ = 0;
  std::optional<protocol::ObjectId> fetching_;
};

}  // namespace fedge::server
