#include "sim/directory/run_directory.h"

#include <utility>

namespace fedge::sim {
namespace {

// The address that the coordinator announces. Nobody connects to it: clients in virtual time have lines.
const protocol::Address kAnnounced{"coordinator.invalid", 7433};

}  // namespace

RunDirectory::RunDirectory(World& world, const DirectorySpec& spec, const run::RunConfig& config,
                           std::size_t clients)
    : world_(world),
      config_(config),
      directory_(spec, clients, world.root()),
      announcer_({.directory = directory_.of_coordinator(),
                  .key = SecretKey::from_seed(directory_.key_of_coordinator().seed()),
                  .addresses = {kAnnounced},
                  .now = [&world] { return world.now(); },
                  .on_event = [&world](const Event& event) { world.report(event); }}) {
  announcer_.set_runs({{config.id, config.name}});
}

void RunDirectory::run() {
  while (!world_.over()) {
    const auto next = directory_.next_event_time();
    const bool waits = !world_.idle() || searching_ > 0;
    if (!next || !waits || (!world_.idle() && world_.next() <= *next)) break;
    world_.advance(*next);
    directory_.run_until(world_.now());
    announcer_.refresh();
  }
  if (world_.idle() || world_.over()) return;
  world_.advance(world_.next());
  directory_.run_until(world_.now());
}

void RunDirectory::find_coordinator(ClientId client, std::function<void(bool found)> done) {
  const PublicKey& pinned = directory_.key_of_coordinator().public_key();
  ++searching_;
  directory_.of(client).lookup(dht::coordinator_key(pinned),
                               [this, done = std::move(done)](const Result<std::vector<dht::Record>>& found) {
                                 --searching_;
                                 done(found && !found->empty());
                               });
}

void RunDirectory::publish(ClientId client, RunId run, const NodeRecord& record) {
  const Time expires = world_.now() + config_.status.lifetime();
  const auto made =
      dht::make_record(directory_.key_of(client), {record.sequence, expires}, dht::NodeStatus{run, record});
  if (!made) return world_.fail(made.error());
  directory_.of(client).publish(*made, [this, client](const Result<void>& kept) {
    if (kept || kept.error().code == ErrorCode::kStale) return;
    world_.report(Event{Severity::kInfo, "record.publish_failed", {}}
                      .with("client", std::int64_t{client.value()})
                      .with("reason", kept.error().message));
  });
}

}  // namespace fedge::sim
