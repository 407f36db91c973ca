// Gossip: decentralised federated learning without a common model, as the baseline of FLTorrent
// (arXiv:2605.10499). Every client trains its own model and mixes it with those of its neighbours in each
// round (Lian et al., "Can decentralized algorithms outperform centralized algorithms?", NeurIPS 2017).
// Training is that of ordinary runs, with the same random streams. Nothing takes time: no network, no
// devices, and all clients take part in every round. The result depends on options, run file and seed, not on
// threads. Externally synchronised.
// Memory: a model for each client, plus TrainingPool's during training.
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
#include "lab/gossip/mixing.h"
#include "learn/data/dataset.h"
#include "learn/task.h"
#include "run/run_config.h"
#include "sim/spec.h"
#include "sim/training/training_pool.h"

namespace fedge::lab {

struct GossipOptions {
  std::size_t degree = 10;        // fewest neighbours of each client
  bool fixed = false;             // the same neighbours in all rounds; false: drawn for each round
  std::size_t most_tested = 100;  // clients whose models are evaluated; of more clients, drawn once
};

// Errors are kInvalid; the message begins with the option's name.
Result<void> check_gossip_options(const GossipOptions& options, std::size_t clients);
// Checks that gossip supports the run file; the error begins with the unsupported key.
Result<void> check_gossip_run(const run::RunConfig& config, const sim::SimulationSpec& simulation);

// Results between two steps of a round.
struct GossipFigures {
  RoundNumber round;
  double accuracy_mean = 0;  // over the models of the tested clients
  double accuracy_least = 0;
  double accuracy_most = 0;
  double average_accuracy = 0;    // of the average of all clients' models
  double consensus_distance = 0;  // mean squared distance of all clients' models to their average
};

class Gossip {
 public:
  // Both checks must have passed; borrowed arguments must outlive the result. All models start as the run's
  // initial model. The error names a client without data, or is that of initial_parameters().
  static Result<Gossip> create(const GossipOptions& options, const run::RunConfig& config,
                               const learn::Task& task, Parallel& parallel);

  // One round: train() for all clients, then mix(). The error names the client whose training diverged.
  Result<void> train();
  void mix();
  RoundNumber round() const { return round_; }  // the round that began last

  // Clients whose models are evaluated, ascending.
  const std::vector<ClientId>& tested() const { return tested_; }
  // Errors are those of evaluate().
  Result<GossipFigures> figures(const learn::Dataset& test) const;
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
  std::unique_ptr<sim::TrainingPool> pool_;
  std::vector<ClientId> tested_;
  std::vector<std::shared_ptr<ParameterVector>> models_;  // one for each client; the pool borrows them
  RoundNumber round_;
};

}  // namespace fedge::lab
