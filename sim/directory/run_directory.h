// RunDirectory: a simulated run's use of its directory. The coordinator announces itself and its models,
// devices look it up and publish their records. The directory advances between the other events of the
// simulation. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "dht/node_record.h"
#include "run/run_config.h"
#include "server/directory/announcer.h"
#include "sim/directory/virtual_directory.h"
#include "sim/world.h"

namespace fedge::sim {

class RunDirectory {
 public:
  // The arguments must outlive the object.
  RunDirectory(World& world, const DirectorySpec& spec, const run::RunConfig& config, std::size_t clients);

  // Runs the directory up to the next other event.
  void run();
  void device_up(ClientId client) { directory_.device_up(client); }
  void device_down(ClientId client) { directory_.device_down(client); }
  // The client looks up the coordinator; `done` is told whether the directory knows it.
  void find_coordinator(ClientId client, std::function<void(bool found)> done);
  void publish(ClientId client, RunId run, const NodeRecord& record);
  // The coordinator announces the model of this round.
  void announce(TrackId track, RoundNumber round, const protocol::Manifest& model) {
    announcer_.set_model(config_.id, track, {round, model});
  }

  dht::Directory& of_coordinator() { return directory_.of_coordinator(); }
  PublicKey key_of(ClientId client) { return directory_.key_of(client).public_key(); }

 private:
  World& world_;
  const run::RunConfig& config_;
  VirtualDirectory directory_;
  server::Announcer announcer_;
  std::size_t searching_ = 0;  // devices looking up the coordinator
};

}  // namespace fedge::sim
