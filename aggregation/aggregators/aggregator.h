// Aggregator: how the updates of a round become one step for the model. One class for each rule, one
// table of their names (aggregators/registry.h); a strategy names one and never subclasses another.
// A rule either folds each update into running sums and forgets it (linear) or keeps them all and
// reads them back in column blocks (keeps_individuals): RunState asks for what it needs, add() for
// every update of the round, prepare() once, read() for each piece of the model, clear().
// Externally synchronised; borrows Parallel for the call.
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
  // All of them at once if they lie in memory, else nothing.
  virtual std::span<const float> in_memory() const { return {}; }
  // The values at positions first, first + 1, ... of the packed payload; as many as `out` has room for.
  // Several threads may read at the same time. The error names the file at fault.
  virtual Result<void> read(std::size_t first, std::span<float> out) const = 0;
};

// One client's update as the rules see it.
struct Update {
  ClientId client;
  SampleCount weight;       // training samples behind it; at least 1
  std::uint64_t steps = 1;  // optimizer steps behind it; at least 1
  double norm = 0;          // Euclidean norm of its values
  double factor = 1;        // its values count this many times (a staleness discount, 1 / probability)
  Coverage coverage;
  // Null: all zeros. The update counts in the mean's denominator, but was not sent; only for linear rules.
  std::shared_ptr<const UpdateValues> values;
};

// What a rule can do and asks for; impossible combinations are refused before a run starts.
struct AggregatorTraits {
  bool linear = false;             // a weighted sum, streamed
  bool takes_sums = false;         // add_sum(): updates may be summed elsewhere, or in secret
  bool keeps_individuals = false;  // reads every update again at the end of the round
  bool partial_updates = false;    // takes updates that cover a part of the model
  bool adapters = false;           // combines adapters by their ranks, and needs a model that has some
};

class Aggregator {
 public:
  virtual ~Aggregator() = default;
  // Takes updates in, all or none; the order of calls and of updates never shows in the result. Linear
  // rules have read them when this returns, others keep their `values` until clear().
  virtual Result<void> add(std::span<const Update> updates, Parallel& parallel) = 0;
  // Takes in what updates come to that have been summed elsewhere; only for rules that take sums. Besides
  // their errors: kInvalid if no updates of these weights make such a sum.
  virtual Result<void> add_sum(const ExactSum& sum);
  // The integers behind the aggregate, one a parameter, for noise to be added; zeros before any update. Empty
  // for rules that take no sums.
  virtual std::span<std::int64_t> sums() { return {}; }
  // From now on a mean divides by this sum of weights, whoever comes: it is then one of every trainable
  // parameter, and never short of updates. Only for rules that take sums.
  virtual void divide_by(double /*weight*/) {}
  // The model that the round's updates were trained from, before prepare(); lent until it returns.
  virtual void see_model(const UpdateValues& /*model*/) {}
  // The round's last update is in. kUnavailable if they are too few for the rule, with a sentence
  // that says how many it needs: the model then stays as it is.
  virtual Result<void> prepare(Parallel& parallel) = 0;
  // The aggregate of parameters first, first + 1, ...: what takes the place of the mean difference.
  // 0 where covered() does not reach.
  virtual Result<void> read(std::size_t first, std::span<double> out, Parallel& parallel) = 0;
  // The parameters that have an aggregate; the others keep their values. Empty before prepare().
  virtual Coverage covered() const = 0;
  // Forgets the round's updates, but not what the rule carries from one round to the next.
  virtual void clear() = 0;
  // What the rule carries from one round to the next, as this machine's bytes, to be read or filled between
  // rounds; always the same places and sizes for the same run.
  virtual std::vector<std::span<std::byte>> memory() { return {}; }
};

// What a rule is built for.
struct AggregatorContext {
  std::shared_ptr<const ParameterLayout> layout;  // of the model
  FixedPoint fixed_point;
  std::size_t max_updates = 1;                    // in one round
  double local_momentum = 0;                      // of the clients' optimizer
  double local_proximal = 0;                      // learning rate * mu of a proximal objective
  std::shared_ptr<const AdapterLayout> adapters;  // of the model; null: none
  std::uint64_t seed = 0;  // of the run: a random rule draws from Rng(seed).fork("aggregate", n-th round)
};

using AggregatorFactory = std::function<std::unique_ptr<Aggregator>(const AggregatorContext&)>;

}  // namespace fedge::aggregation
