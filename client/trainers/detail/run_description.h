// The run as a trainer program is told about it: the objects "training" and "model" of the first frame
// (docs/reference/trainer-protocol.md).
#pragma once

#include "core/detail/json.h"
#include "learn/spec.h"

namespace fedge::client {

nlohmann::ordered_json describe_training(const learn::TrainingSpec& spec);
nlohmann::ordered_json describe_model(const learn::ModelSpec& spec);

}  // namespace fedge::client
