// SimulationSpec: the [simulation] section of a run file: the properties of virtual devices and links.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/result.h"
#include "core/time.h"
#include "run/run_config.h"
#include "sim/attacks/attacks.h"
#include "sim/availability/spec.h"
#include "sim/clients/client_labels.h"
#include "sim/directory/spec.h"
#include "sim/energy/spec.h"

namespace fedge::sim {

struct SimulationSpec {
  // Devices: training speed, log-normal over clients around a median.
  double samples_per_second = 1000.0;
  double speed_sigma = 0.0;
  std::vector<double> speeds = {1.0};  // factors of the median, dealt to the clients in turn
  // Share of a model that a device can train, in (0, 1]: drawn uniformly from this list.
  std::vector<double> capabilities = {1.0};
  bool capabilities_dealt = false;  // to the clients in turn, instead of drawn
  // Links: the coordinator's side is never the bottleneck.
  Duration latency{};  // one way, median
  double latency_sigma = 0.0;
  double down_mbps = 50.0;  // 10^6 bit/s
  double up_mbps = 10.0;
  double bandwidth_sigma = 0.0;
  double listening = 1.0;  // share of devices that accept links from others
  // Dropouts: each task is interrupted with this probability, at a uniformly drawn moment of its work.
  double dropout_probability = 0.0;
  Duration dropout_offline{};                          // time until the client returns
  double coordinator_samples_per_second = 0;           // in split training; 0: it needs no time
  std::size_t client_memory = std::size_t{512} << 20;  // bytes, for what clients keep between tasks
  ClientLabels labels;                                 // as operators give them to clients
  bool participants = false;  // the results say which clients took part in each round
  EnergySpec energy;
  AvailabilitySpec availability;
  DirectorySpec directory;
  AttackSpec attack;
};

// Reads only [simulation]; read_run_config() reads the other sections.
Result<SimulationSpec> read_simulation(const config::Document& document);
// A run file as a simulator reads it; errors of all sections are reported. `concrete`: clients are real
// processes, which are honest and always available.
struct Experiment {
  run::RunConfig run;
  SimulationSpec simulation;
};
Result<Experiment> read_experiment(const config::Document& document, bool concrete = false);
// Checks that the attack fits the run: attacks computed from honest updates need whole models.
Result<void> check_attack(const SimulationSpec& spec, const run::RunConfig& config);
// Whether the simulator may compute an update when it arrives at the coordinator: nothing that happens before
// depends on its values. Otherwise it computes the update when the device has trained.
bool computes_on_arrival(const SimulationSpec& spec, const run::RunConfig& config);
// Why a process cannot continue a simulation that another has begun; nothing if it can.
std::optional<std::string> cannot_continue(const SimulationSpec& spec);
// Checks that the run can begin although some devices are never up.
Result<void> check_availability(const SimulationSpec& spec, const run::RunConfig& config);
// Checks that enough clients have the labels that the run selects by.
Result<void> check_where(const SimulationSpec& spec, const run::RunConfig& config);
// Checks that devices with processors are compatible with the rest of the run.
Result<void> check_energy(const SimulationSpec& spec, const run::RunConfig& config);
// Checks that the directory that the run requires is configured.
Result<void> check_directory(const SimulationSpec& spec, const run::RunConfig& config);
// The keys of [simulation], for the generated reference.
std::vector<config::KeyDoc> describe_simulation();

}  // namespace fedge::sim
