// A model at the end of a run.
#pragma once

#include <memory>

#include "core/parameters.h"
#include "server/engine/track_description.h"

namespace fedge::server {

struct FinalModel {
  std::shared_ptr<const TrackDescription> track;  // null in a run without tracks
  ParameterVector values;
};

}  // namespace fedge::server
