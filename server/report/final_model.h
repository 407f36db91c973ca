// A model that a run ends with.
#pragma once

#include <memory>

#include "core/parameters.h"
#include "server/engine/track_description.h"

namespace fedge::server {

struct FinalModel {
  std::shared_ptr<const TrackDescription> track;  // null in a run without disagreements
  ParameterVector values;
};

}  // namespace fedge::server
