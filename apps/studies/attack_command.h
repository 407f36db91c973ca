// `fedge-lab attack`: hostile nodes in a Kademlia directory, with and without protections.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "core/result.h"
#include "lab/attack/attack.h"

namespace CLI {
class App;
}

namespace fedge::apps {

struct AttackCommand {
  std::string attack = "crowd";
  std::vector<std::string> protections = {"none", "opendht", "all"};
  lab::AttackOptions options;
  std::size_t seeds = 5;
  std::size_t jobs = 1;
  bool json = false;
};

// Adds the subcommand, which fills in `command`.
CLI::App* add_attack(CLI::App& app, AttackCommand& command);

// Table: a row for each metric, a column for each set of protections: mean and half of the 95 % confidence
// interval over the seeds.
// JSON: one object,
//   {"attack":"crowd","nodes":1000,"hostile":0.2,"seeds":5,"protections":[{"protect":"none",
//    "figures":{"success_percent":{"mean":0,"half_width":0},...}}]}
// where null means not measured. Errors name the wrong option.
Result<void> run_attack_command(const AttackCommand& command, std::FILE* out);

}  // namespace fedge::apps
