// Aggregator: turns the updates of a round into one step for the model. Each rule is one class, listed by
// name in aggregators/registry.h; a strategy names a rule and never subclasses another. A linear rule folds
// each update into running sums and forgets it. Other rules keep all updates and read them back in column
// blocks (keeps_individuals). Call order of RunState: add() for every update of the round, prepare() once,
// read() for each piece of the model, clear(). Externally synchronised; borrows Parallel for the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "aggregation/exact_sum.h"
#include "aggregation/fixed_point.h"
#include "core/adapter_layout.h"
#include "core/coverage.h"
#include "core/ids.h"
#include "core/parallel.h"
#include "core/parameters.h"
#include "core/result.h"

namespace fedge::aggregation {

// The values of one update, packed over its coverage: in memory, or in a chunk store. Every value has
// been checked: finite and within FixedPoint::max_abs.
class UpdateValues {
 public:
  virtual ~UpdateValues() = default;
  // Returns all values if they lie in memory, else an empty span.
  virtual std::span<const float> in_memory() const { return {}; }
  // Reads the values at positions first, first + 1, ... of the packed payload, out.size() of them. Several
  // threads may read at the same time. The error names the damaged file.
  virtual Result<void> read(std::size_t first, std::span<float> out) const = 0;
};

// One client's update as the rules see it.
struct Update {
  ClientId client;
  SampleCount weight;       // training samples behind it; at least 1
  std::uint64_t steps = 1;  // optimizer steps behind it; at least 1
  double norm = 0;          // Euclidean norm of its values
  double factor = 1;        // multiplies its values (a staleness discount, 1 / probability)
  // As the client reports it: the mean loss over its training, or, for rules with reads_losses, of the
  // round's model on its samples. Finite.
  double loss = 0;
  Coverage coverage;
  // Null means all zeros: the update was not sent but counts in the mean's denominator. Only for linear
  // rules.
  std::shared_ptr<const UpdateValues> values;
  // Another process adds the values, to sums that are added to this aggregator's (Aggregator::sums()); here
  // they are null.
  bool elsewhere = false;
};

// Capabilities and needs of a rule. check_recipe() (run/recipe.h) reads them and refuses impossible
// combinations before a run starts, for rules of this repository and for own ones alike.
struct AggregatorTraits {
  bool linear = false;      // a weighted sum, streamed
  bool takes_sums = false;  // add_sum(): accepts updates summed elsewhere or by secure aggregation. Also
                            // sums() and divide_by(), for differential privacy of sums
  // A linear rule in which every update has the same weight, whatever its samples: a sum counts each update
  // uniform_weight() times (mean.h). False: a linear rule weights an update by its samples. Read by secure
  // aggregation, differential privacy, SCAFFOLD, tracks.lifting_rounds and samplers that set coefficients.
  bool uniform_weights = false;
  // Reads Update::steps and the clients' momentum and proximal term (AggregatorContext), so every update must
  // come from SGD at a constant rate. Read by the checks of clients' training, samplers and local privacy.
  bool counts_steps = false;
  bool keeps_individuals = false;  // reads every update again at the end of the round
  bool partial_updates = false;    // accepts updates that cover a part of the model
  bool adapters = false;           // combines adapters by their ranks; needs a model with adapters
  // Computes the adapters' factors in a new basis in every round, so values that a client holds back for
  // later rounds have no meaning there. Read by the check of compression.error_feedback.
  bool changes_basis = false;
  bool changes_base = false;  // adds to frozen weights. Read by the check of model.base_dtype
  bool reads_losses = false;  // reads Update::loss; clients then measure it before they train
};

class Aggregator {
 public:
  virtual ~Aggregator() = default;
  // Adds all updates or none; the order of calls and of updates never changes the result. Linear rules have
  // read the values on return; other rules keep `values` until clear().
  virtual Result<void> add(std::span<const Update> updates, Parallel& parallel) = 0;
  // Adds a sum of updates computed elsewhere; only for rules with takes_sums. Errors as for add(), and
  // kInvalid if no updates of these weights can have such a sum.
  virtual Result<void> add_sum(const ExactSum& sum);
  // The integer sums behind the aggregate, one a parameter, so that noise can be added; zeros before any
  // update. Empty for rules without takes_sums.
  virtual std::span<std::int64_t> sums() { return {}; }
  // Fixes the divisor of all later means to this sum of weights. The mean then covers every trainable
  // parameter and needs no minimum of updates. Only for rules with takes_sums.
  virtual void divide_by(double /*weight*/) {}
  // Lends the model that the round's updates were trained from, until prepare() returns. Called before
  // prepare().
  virtual void see_model(const UpdateValues& /*model*/) {}
  // Ends the round's input. kUnavailable if the rule needs more updates (the message says how many); the
  // model then stays as it is.
  virtual Result<void> prepare(Parallel& parallel) = 0;
  // Reads the aggregate of parameters first, first + 1, ..., which replaces the mean difference. 0 outside
  // covered().
  virtual Result<void> read(std::size_t first, std::span<double> out, Parallel& parallel) = 0;
  // The parameters that have an aggregate; all others keep their values. Empty before prepare().
  virtual Coverage covered() const = 0;
  // Forgets the round's updates, but keeps the rule's state across rounds.
  virtual void clear() = 0;
  // The rule's state across rounds in native byte order, to be saved or restored between rounds. Addresses
  // and sizes stay the same for the whole run.
  virtual std::vector<std::span<std::byte>> memory() { return {}; }
};

// Everything a rule is constructed from.
struct AggregatorContext {
  std::shared_ptr<const ParameterLayout> layout;  // of the model
  FixedPoint fixed_point;
  std::size_t max_updates = 1;                    // in one round
  double local_rate = 0;                          // learning rate of the clients' optimizer
  double local_momentum = 0;                      // of the clients' optimizer
  double local_proximal = 0;                      // learning rate * mu of a proximal objective
  std::shared_ptr<const AdapterLayout> adapters;  // of the model; null: none
  std::uint64_t seed = 0;  // of the run: a random rule draws from Rng(seed).fork("aggregate", n-th round)
};

using AggregatorFactory = std::function<std::unique_ptr<Aggregator>(const AggregatorContext&)>;

}  // namespace fedge::aggregation
