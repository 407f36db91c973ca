// Kinds of runs that cover what simulations do, for tests of all of them.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {

inline const Settings kComeAndGo = {"simulation.dropout.probability=0.3", "run.wait_for_clients=4",
                                    "simulation.availability={kind=\"gilbert_elliott\",slot_seconds=2}",
                                    "run.round_deadline=60"};
inline const Settings kTwoLayers = {"model.kind=mlp", "model.hidden=[20, 10]"};

struct RunKind {
  std::string name;
  Settings settings;
};

inline const std::vector<RunKind> kRunKinds = {
    {"fedavg", {}},
    {"dropouts and availability", kComeAndGo},
    {"scaffold", Settings{"strategy.kind=scaffold"} + kComeAndGo},
    {"fedadam", {"strategy.kind=fedadam"}},
    {"fedbuff", Settings{"strategy.kind=fedbuff"} + kComeAndGo},
    {"fedbuff, tasks under way on former models",
     Settings{"strategy.kind=fedbuff", "strategy.schedule.buffer_size=2"} + kComeAndGo},
    {"partial layers", Settings{"strategy.kind=fedplt"} + kTwoLayers},
    {"median", {"strategy.kind=median"}},
    {"moon", Settings{"strategy.kind=moon"} + kTwoLayers},
    {"error feedback", {"compression.kind=top_k", "compression.fraction=0.1"}},
    {"a layer of the clients' own",
     Settings{"model.personal=[\"dense3\"]", "evaluation.where=none"} + kTwoLayers},
    {"adaptive clipping, and noise on sums",
     {"data.partition.clients=20", "run.round_deadline=60", "differential_privacy.kind=central",
      "differential_privacy.noise_multiplier=1.0", "differential_privacy.clipping=adaptive",
      "differential_privacy.count_noise=0.6"}},
    {"noise along a tree",
     {"data.partition.clients=20", "run.round_deadline=60", "differential_privacy.kind=tree",
      "differential_privacy.noise_multiplier=1.0"}},
    {"secure aggregation",
     {"data.partition.clients=20", "run.round_deadline=60", "sampling.clients_per_round=10",
      "secure_aggregation.kind=exact", "secure_aggregation.min_clients=3",
      "simulation.dropout.probability=0.2"}},
    {"distributed noise",
     {"data.partition.clients=20", "run.round_deadline=60", "sampling.clients_per_round=10",
      "secure_aggregation.kind=compact", "secure_aggregation.min_clients=3",
      "differential_privacy.kind=distributed", "differential_privacy.noise_multiplier=1.0",
      "differential_privacy.max_participations=5"}},
    {"plans of energy on devices that run out of it",
     Settings{"strategy.kind=anycostfl", "strategy.planner={energy_limit = 0.06, kept = [1, 0.3]}",
              "compression={kind = \"top_k\", error_feedback = false}", "simulation.energy.kind=clusters",
              "simulation.energy.battery={capacity_wh = 0.0001, initial = [0.3, 1.0], charge_watts = 0.01, "
              "charge_from = 0, charge_to = 24, idle_watts = 0.0001}",
              "run.round_deadline=2", "sampling.min_available=3", "run.wait_for_clients=10",
              "sampling.kind=energy_aware", "simulation.device.sigma=0"} +
         kTwoLayers},
    {"a swarm", {"dissemination.kind=swarm", "simulation.dropout.probability=0.2"}},
    {"serverless", {"dissemination.kind=serverless", "simulation.dropout.probability=0.2"}},
    {"best model", {"run.keep_best=accuracy"}},
    {"refused updates", {"strategy.max_abs=0.02"}},
    {"tracks",
     {"sampling.clients_per_round=10",
      "tracks.disagreement=[{ kind = \"inbound\", clients = [\"1\"], against = [\"2\"], from_round = 2, "
      "until_round = 4 }]"}},
};

}  // namespace fedge::sim
