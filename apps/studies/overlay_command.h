// `fedge-lab overlay`: compares Chord, Pastry and Kademlia in virtual time.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "core/result.h"
#include "lab/overlay/comparison.h"

namespace CLI {
class App;
}

namespace fedge::apps {

struct OverlayCommand {
  lab::ComparisonOptions comparison;
  std::vector<std::string> kinds = {"chord", "pastry", "kademlia"};
  long long warm_up = -1;  // negative: ceil(log2 nodes)
  double round_ms = 1000;
  double rpc_timeout_ms = 500;
  bool open_interval = false;  // fingers in (n, k), as in the paper's pseudo-code
  std::size_t jobs = 1;
  bool json = false;
};

// Adds the subcommand, which fills in `command`.
CLI::App* add_overlay(CLI::App& app, OverlayCommand& command);

// Table: a row for each metric, a column for each overlay: mean and half of the 95 % confidence interval.
// JSON:
//   {"nodes":4096,"rounds":300,"seeds":5,"overlays":[{"kind":"chord","maintenance_scale":1,"pilots":0,
//    "figures":{"lookups":{"mean":3000,"half_width":0},...},"events":1,"wall_seconds":1,
//    "events_per_second":1,"trace_hashes":["..."]}]}
// where null means not measured. Errors name the wrong option.
Result<void> run_overlay_command(const OverlayCommand& command, std::FILE* out);

}  // namespace fedge::apps
