// What a client publishes about itself (core/node_record.h), as the run asks and the device's owner allows.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "client/client_engine.h"
#include "core/ids.h"
#include "core/node_record.h"
#include "core/rng.h"
#include "learn/task.h"
#include "protocol/status_spec.h"

namespace fedge::client {

// For each class of the data what is said of this client's samples of it; empty if nothing is. `noise` must
// not be known to who reads it, and what came out be used for the whole run: drawn anew it would average out.
std::vector<double> published_labels(const learn::Task& task, ClientId client,
                                     const protocol::StatusSpec& spec, Rng noise);

// What there is to say, whether or not it is said.
struct Figures {
  double latency_ms = 0;
  std::optional<double> utility;  // nothing: it has not trained for the run
  std::vector<double> labels;     // published_labels()
};
// The record but for its sequence: of the figures those that the run asks for and that are not withheld.
NodeRecord describe_node(const ClientEngine::Publish& publish, Figures figures,
                         const protocol::StatusSpec& spec, const std::set<protocol::StatusField>& withheld);

}  // namespace fedge::client
