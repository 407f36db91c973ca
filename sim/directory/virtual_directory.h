// VirtualDirectory: the directory of a simulation: one table, or an overlay of which every device and the
// coordinator are nodes, in virtual time. Each of them signs with a key of its own, which follows from the
// run's seed. One thread; a function of spec, seed and calls.
// Memory: of an overlay about 10 KB a node, and a signing key for each that publishes.
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

  // The device's node joins, or leaves without a word.
  void device_up(ClientId client);
  void device_down(ClientId client);

  // Of an overlay: when something happens next. A table has nothing to do by itself.
  std::optional<Time> next_event_time();
  // It is `now`: carries out what happens up to then. Callbacks are called here.
  void run_until(Time now);

 private:
  dht::Directory& directory(std::size_t node);
  const SecretKey& key(std::size_t node);

  std::size_t clients_;  // the coordinator is the node after them
  Rng rng_;
  dht::MemoryDirectory table_;
  std::unique_ptr<OverlayNetwork> network_;  // null: the table
  std::vector<std::unique_ptr<OverlayDirectory>> directories_;
  std::vector<std::unique_ptr<SecretKey>> keys_;
  Time next_look_{};  // of the coordinator, at what it watches
};

}  // namespace fedge::sim
