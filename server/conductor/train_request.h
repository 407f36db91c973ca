// The request that an Assign effect becomes, in the coordinator, the simulator and a replay.
#pragma once

#include <vector>

#include "core/ids.h"
#include "protocol/messages.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

// A track's model as clients get it. Borrows the manifests.
struct TrackView {
  const protocol::Manifest* model = nullptr;
  const protocol::Manifest* control = nullptr;  // null without SCAFFOLD
  std::vector<TrackId> live_tracks;             // whose state clients should keep
};

// `swarm`: clients exchange the model's chunks.
protocol::TrainRequest train_request(RunId run, const RunEngine::Assign& work, const TrackView& track,
                                     bool swarm);

}  // namespace fedge::server
