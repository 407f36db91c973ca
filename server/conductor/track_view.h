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
  // The bins of the next step of the run's statistics, empty if there is none; and by what the data is
  // normalised, once the statistics are known.
  std::vector<float> edges = {};
  learn::Normalisation normalisation = {};
};

}  // namespace fedge::server
