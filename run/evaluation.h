// EvaluationSpec: where the models of a run are evaluated (section [evaluation]).
#pragma once

#include <cstddef>

#include "core/config/reader.h"
#include "learn/spec.h"

namespace fedge::run {

struct EvaluationSpec {
  enum class Where { kCoordinator, kClients, kBoth, kNone };
  Where where = Where::kCoordinator;
  std::size_t clients = 0;  // clients that evaluate a model; 0: all that are connected

  // Whether the coordinator needs samples.
  bool on_coordinator() const { return where == Where::kCoordinator || where == Where::kBoth; }
  bool on_clients() const { return where == Where::kClients || where == Where::kBoth; }
};

// The default is the coordinator; with own data, of which the coordinator has none, it is the clients.
EvaluationSpec read_evaluation(config::Reader& root, const learn::DataSpec& data);

}  // namespace fedge::run
