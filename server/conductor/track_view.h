// A track's model as clients get it.
#pragma once

#include <vector>

#include "core/ids.h"
#include "protocol/chunks/manifest.h"

namespace fedge::server {

// Borrows the manifests.
struct TrackView {
  const protocol::Manifest* model = nullptr;
  const protocol::Manifest* control = nullptr;  // null without SCAFFOLD
  std::vector<TrackId> live_tracks;             // whose state clients should keep
};

}  // namespace fedge::server
