// What `fedge-sim run` does with a run file that has been read: a simulation in virtual time, or one with
// real processes.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/trainers/conversation.h"
#include "core/result.h"
#include "run/run_config.h"
#include "sim/ranks/mpi_ranks.h"
#include "sim/spec.h"

namespace fedge::apps {

struct AbstractRun {
  std::optional<client::TrainerOptions> trainer;  // nothing: the built-in trainer
  std::size_t workers = 1;                        // trainer programs
  std::size_t threads = 1;
  bool resume = false;  // continue the run whose results are in the directory, if there are any
  std::chrono::duration<double> checkpoint_every{10};  // Checkpoints::Options
  sim::MpiRanks* ranks = nullptr;  // processes that share the trainings; null: this one is alone
  // Chooses and claims the directory of the results; called once nothing else can be refused.
  std::function<Result<std::filesystem::path>()> claim;
  std::function<bool()> interrupted;
};

// Writes the results, and a table of the rounds to standard output. An interrupted run is a success, with
// the rounds so far. With ranks, this is rank 0.
Result<void> run_abstract(const AbstractRun& options, const sim::SimulationSpec& spec,
                          const run::RunConfig& config);
// Another rank's share of the same run; prints nothing.
Result<void> run_share(const AbstractRun& options, const sim::SimulationSpec& spec,
                       const run::RunConfig& config);

// A simulation whose coordinator and clients are processes on loopback.
struct ConcreteRun {
  std::filesystem::path program;  // that the processes run
  std::string run_file;
  std::vector<std::string> assignments;
  std::filesystem::path results;
  bool in_directory = false;  // clients find the coordinator in a directory
  std::size_t threads = 1;
  std::string log_level;
  std::function<bool()> interrupted;
};
// Prints what the coordinator needed.
Result<void> run_concrete(const ConcreteRun& options, const sim::SimulationSpec& spec,
                          const run::RunConfig& config);

}  // namespace fedge::apps
