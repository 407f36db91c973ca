// OverlayDirectory: a node's view of the directory on a simulated overlay. Records are values under the first
// 8 bytes of their keys, with a slot for each signer. Uses the same checks as a real network
// (dht/remote_directory.h), so discovery and selection run over any of the overlays in virtual time. Use it
// only on the network's thread, and destroy it before the network.
#pragma once

#include <memory>

#include "dht/remote_directory.h"
#include "sim/overlays/network.h"

namespace fedge::sim {

// A record's place in an overlay: the id of its key, and its publication under that id.
dht::Id id_of(const dht::Key& key);
dht::Publication publication_of(const dht::Record& record);

// The policy of an honest node: keeps a record that is valid now and later than the stored one. `now` is the
// network's clock and must outlive the policy.
dht::StorePolicy keep_right_records(std::function<Time()> now);

class OverlayDirectory final : public dht::RemoteDirectory {
 public:
  OverlayDirectory(OverlayNetwork& network, dht::Address node, const dht::RemoteOptions& limits = {});

 private:
  void put(const dht::Record& record, Done done) override;
  void get(const dht::Key& key, Got got) override;

  OverlayNetwork& network_;
  dht::Address node_;
};

}  // namespace fedge::sim
