// VirtualDirectory: the directory of a simulation: one table, or an overlay with every device and the
// coordinator as nodes, in virtual time. Each node signs with its own key, derived from the run's seed. One
// thread; deterministic in spec, seed and calls.
// Memory: for an overlay about 10 KB a node, and a signing key for each publisher.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/rng.h"
#include "dht/memory_directory.h"
#include "sim/directory/overlay_directory.h"
#include "sim/directory/spec.h"

namespace fedge::sim {

class VirtualDirectory {
 public:
  VirtualDirectory(const DirectorySpec& spec, std::size_t clients, const Rng& root);

  dht::Directory& of(ClientId client) { return directory(client.value()); }
  dht::Directory& of_coordinator() { return directory(clients_); }
  const SecretKey& key_of(ClientId client) { return key(client.value()); }
  const SecretKey& key_of_coordinator() { return key(clients_); }

  // The device's node joins, or leaves without notice.
  void device_up(ClientId client);
  void device_down(ClientId client);

  // Time of the next event. A table has no events.
  std::optional<Time> next_event_time();
  // Sets the time to `now` and processes all events up to then. Callbacks run inside this call.
  void run_until(Time now);

 private:
  dht::Directory& directory(std::size_t node);
  const SecretKey& key(std::size_t node);

  std::size_t clients_;  // the coordinator is the node with this number
  Rng rng_;
  dht::MemoryDirectory table_;
  std::unique_ptr<OverlayNetwork> network_;  // null: the table
  std::vector<std::unique_ptr<OverlayDirectory>> directories_;
  std::vector<std::unique_ptr<SecretKey>> keys_;
  Time next_look_{};  // when the coordinator next checks its watches
};

}  // namespace fedge::sim
