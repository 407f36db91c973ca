// DirectorySpec: section [simulation.directory] of a run file: the directory of simulated devices, if any.
#pragma once

#include <optional>

#include "core/config/reader.h"
#include "dht/overlays/options.h"

namespace fedge::sim {

struct DirectorySpec {
  enum class Kind { kNone, kMemory, kOverlay };
  Kind kind = Kind::kNone;
  dht::OverlayOptions overlay;  // for kOverlay
};

DirectorySpec read_directory(config::Reader& section);

}  // namespace fedge::sim
