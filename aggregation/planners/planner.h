// Planner: decides which part of the model a client trains in a round, as a Coverage. One class for each way
// of dividing a model; one table of their names. Partial-training planners run the whole network and train a
// part of it; width planners cut out a thinner network. A plan depends only on the planner's context, the
// admitted clients, the observed updates and the request, never on earlier plans.
// Cost of a plan: linear in the ranges of its coverage.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/adapter_layout.h"
#include "core/config/reader.h"
#include "core/coverage.h"
#include "core/energy/power.h"
#include "core/energy/training_work.h"
#include "core/ids.h"
#include "core/local_model.h"
#include "core/parameters.h"
#include "core/result.h"
#include "core/rng.h"
#include "core/time.h"

namespace fedge::aggregation {

struct PlanRequest {
  RoundNumber round;       // from 1
  ClientId client;         // below PlannerContext::clients
  Rng rng;                 // random stream of this round and client
  SampleCount samples{1};  // on which it trains
};

struct PlannerContext {
  std::shared_ptr<const ParameterLayout> layout;
  std::size_t clients = 0;  // all clients of the run, 0 .. clients - 1; at most 10^8
  Rng rng;                  // the run's root stream, for draws that hold for the whole run
  std::shared_ptr<const AdapterLayout> adapters = {};  // of the model; null: none
  // For planners that plan time and energy: the operations of training on a sample; how many samples a client
  // that has this many trains on in a task, counting repetitions; and the largest size in bytes of an update
  // with this many values of which this fraction is sent (0: as the run file says).
  TrainingWork work = {};
  std::function<double(SampleCount samples)> trained = {};
  std::function<double(std::size_t values, double kept)> update_bytes = {};
};

class Planner {
 public:
  virtual ~Planner() = default;
  // Admits a client and records the share of the model that it can train, in (0, 1]. Called before its first
  // plan; a repeated call with the same share changes nothing.
  virtual void admit(ClientId, double /*capability*/) {}
  // Takes what the client says about the energy of its work. Called before its first plan, if the client says
  // anything.
  virtual void describe(ClientId, const DevicePower&) {}
  // Caps the client's share of the whole from its next plan on (rank self-pruning).
  virtual void limit(ClientId, double /*share*/) {}
  // A round has ended in which clients reported updates of this mean Euclidean norm.
  virtual void observe(RoundNumber, double /*norm*/) {}
  // A client's update has arrived.
  struct Delivered {
    RoundNumber round;
    ClientId client;
    double loss = 0;  // mean over its training
    Duration time{};  // from the assignment to the update's arrival
  };
  virtual void delivered(const Delivered&) {}
  // Returns what the client trains and uploads in this round: at least one parameter, at most
  // protocol::kMaxCoverageRanges ranges.
  virtual Coverage plan(const PlanRequest& request) = 0;
  // What else the task of the same request asks of the device.
  virtual Effort effort(const PlanRequest& /*request*/) { return {}; }
  // r_k in (0, 1]: the part of all parameters that this client trains and uploads in a round.
  virtual double share(ClientId client) const = 0;
};

// Makes a planner for a model and a population. It holds the options, already checked as far as possible
// without the model; the error says what does not fit the model.
using PlannerFactory = std::function<Result<std::unique_ptr<Planner>>(const PlannerContext&)>;

// A planner with its options read and checked, not yet bound to a model.
struct PlannerPart {
  PlannerFactory make;
  bool splits_output = false;      // no layer is trained by all clients
  std::vector<double> widths;      // LocalModel::kNested: what a client's steps may draw
  std::vector<std::size_t> ranks;  // LocalModel::kPrefix: of the levels, ascending
  std::size_t cut_ranks = 0;       // LocalModel::kSplit: of the two blocks next to the cut; 0: all
  bool reads_norms = false;        // plans depend on the norms of earlier updates (Planner::observe())
  bool reads_losses =
      false;                 // plans depend on the losses and times of earlier updates (Planner::delivered())
  bool sets_kept = false;    // effort() says how many values of an update are sent: it must be sparse
  bool sorts_units = false;  // the coordinator sorts the model's units in every round (unit_order.h)
};

// PlannerTraits declares what a planner's clients train. check_recipe() (run/recipe.h) reads it.
struct PlannerTraits {
  LocalModel local_model = LocalModel::kWhole;
  // Every client trains and sends the whole model, so all updates have the same coverage and size. SCAFFOLD
  // and a warm-up of updates require it; other planners need an aggregator with partial_updates.
  bool whole_model = false;
  // Clients send only the factors B of the adapters; aggregators that multiply factors need both.
  bool one_factor = false;
  // Plans depend on each client's number of samples, which secure aggregation and differential privacy hide.
  bool reads_samples = false;
  // A client must describe its energy (Planner::describe()) before it is given a task.
  bool reads_power = false;
  // It keeps something for each client, by number: the numbers must be below PlannerContext::clients.
  bool numbers_clients = false;
};

struct PlannerKind {
  const char* name;     // as in the run file
  const char* paper;    // publication
  const char* summary;  // one sentence
  PlannerTraits traits;
  // Reads and documents the kind's own keys. Errors stay in `section`, for its finish(); after an error the
  // factory must not be called.
  PlannerPart (*read)(config::Reader& section);
  bool own = false;  // set by register_planner()
};

// All planners; the first is the default.
std::span<const PlannerKind> planner_kinds();
// Adds a planner to the table. Call it at the start of main(), before anything reads the table. The name must
// be new, and no member null; otherwise the program ends with a message and exit code 1.
void register_planner(const PlannerKind& kind);

}  // namespace fedge::aggregation
