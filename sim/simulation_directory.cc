// Simulated devices in a directory: they look up the coordinator and publish their records.
#include <algorithm>
#include <utility>

#include "sim/simulation.h"

namespace fedge::sim {
namespace {

// A placeholder address: only the look-up is simulated.
const protocol::Address kCoordinator{"coordinator.invalid", 7433};

}  // namespace

void Simulation::enter_directory() {
  if (spec_.directory.kind == DirectorySpec::Kind::kNone) return;
  directory_ = std::make_unique<VirtualDirectory>(spec_.directory, clients_.size(), root_);
  announcer_.emplace(
      server::Announcer::Options{.directory = directory_->of_coordinator(),
                                 .key = SecretKey::from_seed(directory_->key_of_coordinator().seed()),
                                 .addresses = {kCoordinator},
                                 .now = [this] { return now_; },
                                 .on_event = [this](const Event& event) { report(event); }});
  announcer_->set_runs({{state_.config().id, state_.config().name}});
}

void Simulation::let_directory_run() {
  while (directory_ && !finished_ && !failure_) {
    const auto next = directory_->next_event_time();
    const bool waits = !queue_.empty() || searching_ > 0;
    if (!next || !waits || (!queue_.empty() && queue_.next().at <= *next)) break;
    now_ = std::max(now_, *next);
    directory_->run_until(now_);
    announcer_->refresh();
  }
  if (!directory_ || queue_.empty() || finished_ || failure_) return;
  now_ = std::max(now_, queue_.next().at);
  directory_->run_until(now_);
}

void Simulation::find_coordinator(ClientId id) {
  const PublicKey& pinned = directory_->key_of_coordinator().public_key();
  ++searching_;
  directory_->of(id).lookup(
      dht::coordinator_key(pinned), [this, id](const Result<std::vector<dht::Record>>& found) {
        --searching_;
        if (found && !found->empty() && at(id).phase.up) return connect_to_coordinator(id);
        schedule(now_, id,
                 ClientInput{client::ClientEngine::Disconnected{
                                 {ErrorCode::kUnavailable, "the directory has no record of the coordinator"}},
                             at(id).session});
      });
}

// Follows the client's records, which requires its key.
void Simulation::follow(ClientId id) {
  if (!nodes_ || !nodes_->in_directory()) return;
  if (const auto followed = nodes_->follow(id, directory_->key_of(id).public_key()); !followed)
    fail(followed.error());
}

void Simulation::publish_in_directory(ClientId id, RunId run, const NodeRecord& record) {
  const Time expires = now_ + state_.config().status.lifetime();
  const auto made =
      dht::make_record(directory_->key_of(id), {record.sequence, expires}, dht::NodeStatus{run, record});
  if (!made) return fail(made.error());
  directory_->of(id).publish(*made, [this, id](const Result<void>& kept) {
    if (kept || kept.error().code == ErrorCode::kStale) return;
    report(Event{Severity::kInfo, "record.publish_failed", {}}
               .with("client", std::int64_t{id.value()})
               .with("reason", kept.error().message));
  });
}

}  // namespace fedge::sim
