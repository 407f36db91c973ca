// SimulationSpec: the [simulation] section of a run file: what virtual devices and links are like.
#pragma once

#include <vector>

#include "core/config/reader.h"
#include "core/result.h"
#include "core/time.h"
#include "run/run_config.h"
#include "sim/attacks/attacks.h"
#include "sim/availability/spec.h"
#include "sim/directory/spec.h"

namespace fedge::sim {

struct SimulationSpec {
  // Devices: training speed, log-normal over clients around a median.
  double samples_per_second = 1000.0;
  double speed_sigma = 0.0;
  // Share of a model that a device can train, in (0, 1]: one of these, evenly drawn.
  std::vector<double> capabilities = {1.0};
  // Links: the coordinator's side is never the bottleneck.
  Duration latency{};  // one way, the median
  double latency_sigma = 0.0;
  double down_mbps = 50.0;  // 10^6 bit/s
  double up_mbps = 10.0;
  double bandwidth_sigma = 0.0;
  double listening = 1.0;  // share of devices that accept links from others
  // Dropouts: each task is cut off with this probability, at a uniformly drawn moment of its work.
  double dropout_probability = 0.0;
  Duration dropout_offline{};  // how long the client stays away
  AvailabilitySpec availability;
  DirectorySpec directory;
  AttackSpec attack;
};

// Reads [simulation] alone; the other sections are read_run_config's.
Result<SimulationSpec> read_simulation(const config::Document& document);
// A run file as a simulator reads it, with all errors of all of its sections. `concrete`: its clients are
// real processes, which are honest and do not come and go.
struct Experiment {
  run::RunConfig run;
  SimulationSpec simulation;
};
Result<Experiment> read_experiment(const config::Document& document, bool concrete = false);
// Whether the attack goes with the run: what is made of the honest updates takes whole ones.
Result<void> check_attack(const SimulationSpec& spec, const run::RunConfig& config);
// Whether a run can begin although some devices are always away.
Result<void> check_availability(const SimulationSpec& spec, const run::RunConfig& config);
// Whether what the run wants of a directory is there.
Result<void> check_directory(const SimulationSpec& spec, const run::RunConfig& config);
// The keys of [simulation], for the generated reference.
std::vector<config::KeyDoc> describe_simulation();

}  // namespace fedge::sim
