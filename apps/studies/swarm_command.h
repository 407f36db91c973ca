// `fedge-lab swarm`: simulates rounds of serverless federated learning in slots. Measures the cost of a
// warm-up that hides the owners of chunks, and what honest-but-curious receivers still learn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "core/result.h"
#include "lab/swarm/swarm_study.h"

namespace CLI {
class App;
}

namespace fedge::apps {

struct SwarmCommand {
  lab::SwarmStudyOptions study;
  std::vector<std::string> mechanisms = {"all"};
  std::string k_mode = "per_universe";
  std::string chunk_order = "rarest";
  std::string owner_fallback = "never";
  std::vector<std::string> attacks = {"all"};
  std::vector<std::uint32_t> up = {7, 12};
  std::vector<std::uint32_t> down = {18, 60};
  bool warmup_only = false;
  std::size_t jobs = 1;
  bool json = false;
};

// Adds the subcommand, which fills in `command`.
CLI::App* add_swarm(CLI::App& app, SwarmCommand& command);

// Table: a row for each metric: mean and half of the 95 % confidence interval over the seeds. JSON: one
// object,
//   {"nodes":100,"chunks":206,"scheduler":"greedy_fastest_first","warmup":"all","k_mode":"per_universe",
//    "seeds":5,"deadlock":null,"failed_open":[],"figures":{"warmup_slots":{"mean":240,"half_width":1},...},
//    "slots":1,"transfers":1,"wall_seconds":1,"slots_per_second":1,"log_hashes":["..."]}
// null means not measured. "deadlock" names the violated inequality that forced owners to send. Errors name
// the wrong option.
Result<void> run_swarm_command(const SwarmCommand& command, std::FILE* out);

}  // namespace fedge::apps
