// TrainedUpdate: what a virtual client has computed in a task. A plain value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "core/coverage.h"
#include "core/ids.h"
#include "core/result.h"
#include "learn/trainer.h"
#include "protocol/chunks/manifest.h"
#include "protocol/messages.h"

namespace fedge::sim {

struct TrainedUpdate {
  TaskId task;
  Coverage coverage;
  learn::TrainingResult training;
  double norm = 0;
  protocol::Manifest shape;  // of the encoded update, without the hashes of its chunks
  std::shared_ptr<const aggregation::UpdateValues> values;  // in memory unless spooled
  std::optional<Error> failure;                             // if set, only the task is valid
  std::optional<Error> fault = {};                          // why the values are zeros that do not count
  std::vector<std::int64_t> sums = {};                      // of an evaluation or of statistics
  // The norm of the values, or why they cannot be added (run::inspect_values); nothing: not inspected yet.
  std::optional<Result<double>> inspected = {};
  bool elsewhere = false;  // another rank has the values
};

// Writes what a client says of its update into the offer.
void describe(const TrainedUpdate& update, protocol::UpdateOffer& offer);

}  // namespace fedge::sim
