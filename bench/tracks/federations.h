// The federations that the experiment on contamination compares: three as they are written down, slow and
// obvious, with weighted means in double precision and no engine, and the simulator's own. In all of them
// everybody trains in every round, on the same batches: local training is learn::Task::train of client and
// round.
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

// What a round ends with: the model of those who exclude a client, and that of the others.
struct Models {
  Model owners;
  Model others;
};
using History = std::vector<Models>;  // one for each round

// What a reference works with; lent.
struct Setup {
  const learn::Task& task;
  std::uint64_t seed;
  std::uint32_t rounds;
};

// FedAvg (McMahan et al., AISTATS 2017): one model for all who take part.
History plain_federation(const Setup& setup, std::span<const ClientId> clients);

// Naive resolution of "excluded must not influence owners": two aggregates, and every client trains only its
// own model. The owners' is the mean of what all but the excluded client have trained, the others' the mean
// of all.
History naive_federation(const Setup& setup, std::span<const ClientId> owners, ClientId excluded);

struct Run {
  const run::RunConfig& config;
  const learn::Task& task;
  const learn::Dataset& test;
};
// The run through the simulator. The owners' model is that of the track that excludes somebody, the others'
// that of the track that excludes nobody; where there is one model it is both.
Result<History> simulated_federation(const Run& run, Parallel& parallel);

}  // namespace fedge::bench
