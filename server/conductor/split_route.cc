// Clients send their updates to the coordinator, which trains the last blocks of the model for each of them,
// and folds both halves together.
#include "server/conductor/route.h"

namespace fedge::server {
namespace {

class SplitRoute final : public Route {
 public:
  explicit SplitRoute(const RouteParts& parts) : parts_(parts) {}

  void assigned(const RunEngine::Assign& work, const protocol::Manifest& model) override {
    if (halves() != nullptr && work.task.kind == TaskKind::kTraining) halves()->begin(work, model);
  }
  void fetch(const RunEngine::Fetch& offered) override { parts_.ports.updates->fetch(offered); }
  void discard(ClientId client, TaskId task) override {
    parts_.ports.updates->discard(client, task);
    drop(client, task);
  }
  void fold(const RunEngine::Fold& accepted) override {
    parts_.ports.aggregate->fold(accepted);
    drop(accepted.client, accepted.task);
  }
  void dismissed(ClientId client, const protocol::Message& message) override {
    if (const auto* cancel = std::get_if<protocol::CancelTask>(&message)) drop(client, cancel->task());
    if (const auto* failed = std::get_if<protocol::TaskFailed>(&message)) drop(client, failed->task());
  }
  void close(const RunEngine::CloseRound& turn) override {
    if (turn.kind == TaskKind::kTraining) closed_ = turn.round;
    parts_.host.close(turn, Folded{});
  }
  void committed(bool) override {
    if (halves() != nullptr) halves()->forget(closed_);
  }
  void left(ClientId client, bool) override {
    if (halves() != nullptr) halves()->left(client);
  }
  Heard receive(ClientId client, const protocol::Message& message) override {
    return halves() != nullptr && halves()->receive(client, message) ? Heard::kTaken : Heard::kOther;
  }
  void stop() override {
    if (halves() != nullptr) halves()->stop();
  }

 private:
  Halves* halves() const { return parts_.ports.halves; }
  void drop(ClientId client, TaskId task) {
    if (halves() != nullptr && task.kind == TaskKind::kTraining) halves()->drop(client, task);
  }

  RouteParts parts_;
  RoundNumber closed_;  // the last round that was closed
};

}  // namespace

std::unique_ptr<Route> make_split_route(const RouteParts& parts) {
  return std::make_unique<SplitRoute>(parts);
}

}  // namespace fedge::server
