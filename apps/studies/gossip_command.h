// `fedge-lab gossip`: the baseline for serverless rounds: without a common model, each client trains its
// own model and mixes it with those of its neighbours.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "core/platform/thread_pool.h"
#include "core/result.h"
#include "lab/gossip/gossip.h"

namespace CLI {
class App;
}

namespace fedge::apps {

struct GossipCommand {
  std::string run_file;
  std::vector<std::string> assignments;
  lab::GossipOptions gossip;
  std::string topology = "each_round";
  std::string evaluate = "mixed";
  std::size_t jobs = available_processors();
  bool json = false;
};

// Adds the subcommand, which fills in `command`.
CLI::App* add_gossip(CLI::App& app, GossipCommand& command);

// Table: a row for each evaluated round, printed as the round ends. JSON: one object at the end,
//   {"name":"fashion-mlp","clients":50,"degree":10,"topology":"each_round","evaluated":"mixed","tested":50,
//    "rounds":[{"round":1,"accuracy_mean":0.5,"accuracy_least":0.1,"accuracy_most":0.7,"average_accuracy":0.6,
//     "consensus_distance":1.5},...],"models_hash":"..."}
// Errors name the wrong option or key of the run file.
Result<void> run_gossip_command(const GossipCommand& command, std::FILE* out);

}  // namespace fedge::apps
