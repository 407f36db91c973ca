// The default server optimizer, which adds the aggregate to the model.
#pragma once

#include <memory>

#include "aggregation/server_optimizers/server_optimizer.h"
#include "core/config/document.h"

namespace fedge::bench {

inline std::unique_ptr<aggregation::ServerOptimizer> plain_server_optimizer() {
  const config::Table empty;
  config::Reader section(empty, "", "");
  return aggregation::server_optimizer_kinds().front().read(section)(0);
}

}  // namespace fedge::bench
