// Builds what a client publishes about itself (core/node_record.h): what the run asks for and the owner
// allows.
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

// What is published about this client's number of samples of each class; empty if nothing. Readers must not
// know `noise`. Draw it once per run and reuse the result: repeated draws would average out.
std::vector<double> published_labels(const learn::Task& task, ClientId client,
                                     const protocol::StatusSpec& spec, Rng noise);

// All available values, whether or not they are published.
struct Figures {
  double latency_ms = 0;
  std::optional<double> utility;       // nothing: it has not trained for the run yet
  std::vector<double> labels;          // published_labels()
  std::optional<double> battery = {};  // nothing: unknown
};
// The record without its sequence number; leaves out what the run does not ask for or the owner withholds.
NodeRecord describe_node(const ClientEngine::Publish& publish, Figures figures,
                         const protocol::StatusSpec& spec, const std::set<protocol::StatusField>& withheld);

}  // namespace fedge::client
