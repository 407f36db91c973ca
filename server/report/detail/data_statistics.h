// The statistics of the clients' data as JSON. Private to report/.
#pragma once

#include "core/detail/json.h"
#include "core/result.h"
#include "learn/statistics/federated_statistics.h"

namespace fedge::server {

nlohmann::ordered_json to_object(const learn::DataStatistics& statistics);
// kInvalid names what is missing or wrong.
Result<learn::DataStatistics> read_statistics(const nlohmann::ordered_json& object);

}  // namespace fedge::server
