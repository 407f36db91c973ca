// DirectorySpec: [simulation.directory] of a run file: whether and how simulated devices have a directory.
#pragma once

#include <optional>

#include "core/config/reader.h"
#include "sim/overlays/options.h"

namespace fedge::sim {

struct DirectorySpec {
  enum class Kind { kNone, kMemory, kOverlay };
  Kind kind = Kind::kNone;
  OverlayOptions overlay;  // of kOverlay
};

DirectorySpec read_directory(config::Reader& section);

}  // namespace fedge::sim
