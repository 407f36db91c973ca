// A track's model as clients get it.
#pragma once

#include <vector>

#include "core/ids.h"
#include "learn/statistics/columns.h"
#include "protocol/chunks/manifest.h"

namespace fedge::server {

// Borrows the manifests.
struct TrackView {
  const protocol::Manifest* model = nullptr;
  const protocol::Manifest* control = nullptr;  // null without SCAFFOLD
  std::vector<TrackId> live_tracks;             // whose state clients should keep
  // Of the run's statistics: the bins of the next step, empty if there is none, and once they are known what
  // the data is normalised by.
  std::vector<float> edges = {};
  learn::Normalisation normalisation = {};
};

}  // namespace fedge::server
