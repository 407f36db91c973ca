// The federations that the experiment on contamination compares. Two are references, slow and obvious, with
// weighted means in double precision and no engine; the third is the simulator. In all of them every client
// trains in every round on the same batches: local training is learn::Task::train of client and round.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/parallel.h"
#include "core/result.h"
#include "learn/data/dataset.h"
#include "learn/task.h"
#include "run/run_config.h"
#include "sim/spec.h"

namespace fedge::bench {

using Model = std::vector<float>;

// The models at the end of a round: of the owners, who exclude a client, and of the others.
struct Models {
  Model owners;
  Model others;
};
using History = std::vector<Models>;  // one for each round

// The input of a reference; borrowed.
struct Setup {
  const learn::Task& task;
  std::uint64_t seed;
  std::uint32_t rounds;
};

// FedAvg (McMahan et al., AISTATS 2017): one model for all `clients`.
History plain_federation(const Setup& setup, std::span<const ClientId> clients);

// Naive resolution of "excluded must not influence owners": two aggregates, and every client trains only its
// own model. The owners' model is the mean over all clients but the excluded one, the others' the mean over
// all.
History naive_federation(const Setup& setup, std::span<const ClientId> owners, ClientId excluded);

struct Run {
  const run::RunConfig& config;
  const learn::Task& task;
  const learn::Dataset& test;
};
// The run through the simulator. The owners' model is that of the track with an exclusion, the others' that
// of the track without one. If the run has one model, both are this model.
Result<History> simulated_federation(const Run& run, Parallel& parallel);

}  // namespace fedge::bench
