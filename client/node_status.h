// What a client publishes about itself (core/node_record.h), as the run asks.
#pragma once

#include <vector>

#include "core/ids.h"
#include "core/rng.h"
#include "learn/task.h"
#include "protocol/status_spec.h"

namespace fedge::client {

// For each class of the data what is said of this client's samples of it; empty if nothing is. `noise` must
// not be known to who reads it, and what came out be used for the whole run: drawn anew it would average out.
std::vector<double> published_labels(const learn::Task& task, ClientId client,
                                     const protocol::StatusSpec& spec, Rng noise);

}  // namespace fedge::client
