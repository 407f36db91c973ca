// OverlayDirectory: the directory as one node of a simulated overlay sees it: records are values under the
// first 8 bytes of their keys, each signer's in a slot of its own. The same checks as over a real network
// (dht/remote_directory.h), so that discovery and selection run over any of the overlays in virtual time.
// One thread, the network's; must go before the network.
#pragma once

#include <memory>

#include "dht/remote_directory.h"
#include "sim/overlays/network/network.h"

namespace fedge::sim {

// Where a record lies: a record's key, and its signer, as an overlay knows them.
Id id_of(const dht::Key& key);
Publication publication_of(const dht::Record& record);

// What an honest node keeps: a record that is right at this time, later than what is there. `now` outlives
// the policy; it is the network's.
StorePolicy keep_right_records(std::function<Time()> now);

class OverlayDirectory final : public dht::RemoteDirectory {
 public:
  OverlayDirectory(OverlayNetwork& network, Address node, const dht::RemoteOptions& limits = {});

 private:
  void put(const dht::Record& record, Done done) override;
  void get(const dht::Key& key, Got got) override;

  OverlayNetwork& network_;
  Address node_;
};

}  // namespace fedge::sim
