// ServerOptimizer: moves the model by a round's aggregate (Reddi et al., "Adaptive Federated Optimization",
// ICLR 2021). One class for each family, one table of names. The aggregate points downhill: it replaces the
// negative gradient. No bias correction. Parameters without an aggregate keep their values and their
// optimizer state.
// Cost: one pass; memory 4 bytes a parameter for each stored moment. Externally synchronised.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "core/config/reader.h"

namespace fedge::aggregation {

class ServerOptimizer {
 public:
  virtual ~ServerOptimizer() = default;
  // Begins the steps of a round: `share` is the fraction of all clients whose updates the aggregate contains.
  // May be called again for the same round.
  virtual void begin(double /*share*/) {}
  // Moves model[i], which is parameter first + i, by aggregate[i]; each parameter at most once a round.
  virtual void step(std::size_t first, std::span<float> model, std::span<const double> aggregate) = 0;
  // As Aggregator::memory().
  virtual std::vector<std::span<std::byte>> memory() { return {}; }
};

// Makes an optimizer for a model with this number of parameters.
using ServerOptimizerFactory = std::function<std::unique_ptr<ServerOptimizer>(std::size_t parameters)>;

struct ServerOptimizerKind {
  const char* name;
  const char* paper;
  const char* summary;
  // Reads the options from [strategy.server_optimizer].
  ServerOptimizerFactory (*read)(config::Reader& section);
  bool own = false;  // set by register_server_optimizer()
  // Keeps the sum of all clients' updates, with the share that begin() gives. Needs the objective "dynamic"
  // and an unweighted mean of whole updates.
  bool sums_clients = false;
};

// The first is the default.
std::span<const ServerOptimizerKind> server_optimizer_kinds();
// Adds a server optimizer to the table. Call it at the start of main(), before anything reads the table. The
// name must be new, and no member null; otherwise the program ends with a message and exit code 1.
void register_server_optimizer(const ServerOptimizerKind& kind);

// One round's step for a slice of the model that begins at parameter `first`: reads the prepared aggregator
// and moves the covered parameters. Errors are the aggregator's, and those of an optimizer that a program
// registers.
Result<void> step_model(Aggregator& aggregator, ServerOptimizer& optimizer, std::size_t first,
                        std::span<float> model, Parallel& parallel);

}  // namespace fedge::aggregation
