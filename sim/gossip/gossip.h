// Gossip: decentralised federated learning without a common model, for comparison with rounds that have one
// (the baseline of FLTorrent, arXiv:2605.10499): every client trains its own model and mixes it with those of
// its neighbours, round after round (Lian et al., "Can decentralized algorithms outperform centralized
// algorithms?", NeurIPS 2017). Training is that of ordinary runs, with the same random streams. Nothing has a
// duration here: no network, no devices, and everybody takes part in every round. A function of options, run
// file and seed, whatever the threads. Externally synchronised.
// Memory: a model for each client; while they train, what TrainingPool keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/ids.h"
#include "core/parallel.h"
#include "core/parameters.h"
#include "core/result.h"
#include "learn/data/dataset.h"
#include "learn/task.h"
#include "run/run_config.h"
#include "sim/gossip/mixing.h"
#include "sim/spec.h"
#include "sim/training_pool.h"

namespace fedge::sim {

struct GossipOptions {
  std::size_t degree = 10;        // neighbours that each client has at least
  bool fixed = false;             // the same ones in all rounds; otherwise drawn anew for each
  std::size_t most_tested = 100;  // clients whose models are evaluated; if there are more, drawn once
};

// kInvalid begins with the option's name.
Result<void> check_gossip_options(const GossipOptions& options, std::size_t clients);
// Whether gossip can do what the run file asks for; the error begins with the key that it cannot heed.
Result<void> check_gossip_run(const run::RunConfig& config, const SimulationSpec& simulation);

// Between two of a round's steps.
struct GossipFigures {
  RoundNumber round;
  double accuracy_mean = 0;  // over the models of those clients that are tested
  double accuracy_least = 0;
  double accuracy_most = 0;
  double average_accuracy = 0;    // of the average of all clients' models
  double consensus_distance = 0;  // mean squared distance of all clients' models to it
};

class Gossip {
 public:
  // Both checks must have passed; what is lent must outlive it. All models begin as the run's initial one.
  // The error names a client without data, or is initial_parameters'.
  static Result<Gossip> create(const GossipOptions& options, const run::RunConfig& config,
                               const learn::Task& task, Parallel& parallel);

  // A round: everybody trains, then everybody mixes. The error names the client whose training diverged.
  Result<void> train();
  void mix();
  RoundNumber round() const { return round_; }  // the one that has begun last

  // Clients whose models are evaluated, ascending.
  const std::vector<ClientId>& tested() const { return tested_; }
  GossipFigures figures(const learn::Dataset& test) const;
  const ParameterVector& model(ClientId client) const { return *models_[client.value()]; }
  // SHA-256 over the model_hash() of each client's model, in the order of the clients.
  Digest hash() const;

 private:
  Gossip(const GossipOptions& options, const run::RunConfig& config, const learn::Task& task,
         Parallel& parallel);
  swarm::Overlay neighbours() const;
  std::vector<std::span<float>> values() const;

  GossipOptions options_;
  const learn::Task& task_;
  Parallel& parallel_;
  Rng rng_;
  TrainingPool pool_;
  std::vector<ClientId> tested_;
  std::vector<std::shared_ptr<ParameterVector>> models_;  // of each client; the pool borrows them
  RoundNumber round_;
};

}  // namespace fedge::sim
