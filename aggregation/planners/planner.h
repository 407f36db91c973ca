// Planner: decides which part of the model a client trains in a round, as a Coverage. One class for
// each way of dividing a model, one table of their names. Partial-training planners leave the whole
// network running and train a part of it; width planners cut out a thinner network.
// A plan depends on the context a planner was made with, on who has been admitted and on the request, never
// on which plans were made before. Cost of a plan: linear in the ranges of its coverage.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "core/adapter_layout.h"
#include "core/config/reader.h"
#include "core/coverage.h"
#include "core/ids.h"
#include "core/local_model.h"
#include "core/parameters.h"
#include "core/result.h"
#include "core/rng.h"

namespace fedge::aggregation {

struct PlanRequest {
  RoundNumber round;  // from 1
  ClientId client;    // below PlannerContext::clients
  Rng rng;            // this decision's own stream: of this round and this client
};

struct PlannerContext {
  std::shared_ptr<const ParameterLayout> layout;
  std::size_t clients = 0;  // all clients of the run, 0 .. clients - 1; at most 10^8
  Rng rng;                  // the run's root stream: what is drawn once for the whole run
  std::shared_ptr<const AdapterLayout> adapters;  // of the model; null: none
};

class Planner {
 public:
  virtual ~Planner() = default;
  // The client takes part and says which share of the model it can train, in (0, 1]. Before its first plan;
  // the same again changes nothing.
  virtual void admit(ClientId, double /*capability*/) {}
  // The client asks for at most this share of the whole from its next plan on (rank self-pruning).
  virtual void limit(ClientId, double /*share*/) {}
  // What the client trains and uploads in this round: at least one parameter, at most
  // protocol::kMaxCoverageRanges ranges.
  virtual Coverage plan(const PlanRequest& request) = 0;
  // r_k in (0, 1]: the part of all parameters that this client trains and uploads in a round.
  virtual double share(ClientId client) const = 0;
};

// Makes a planner for a model and a population. Holds the options that were read, checked as far as
// they can be without the model; the error says what does not fit the model.
using PlannerFactory = std::function<Result<std::unique_ptr<Planner>>(const PlannerContext&)>;

struct PlannerKind {
  const char* name;     // as in the run file
  const char* paper;    // where it comes from
  const char* summary;  // one sentence
  LocalModel local_model;
  // Reads and documents the kind's own keys. Errors are left in `section`, for its finish(); the
  // factory is then not to be used.
  PlannerFactory (*read)(config::Reader& section);
};

// Every planner there is; the first is the default.
std::span<const PlannerKind> planner_kinds();

}  // namespace fedge::aggregation
