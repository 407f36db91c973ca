// `fedge-sim run`: its options, and how a run file becomes a simulation.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/trainer_options.h"
#include "core/platform/thread_pool.h"
#include "server/report/results_place.h"

namespace fedge::apps {

inline constexpr const char* kThreadsHelp = "Number of threads; does not affect the result";
inline constexpr const char* kAllThreadsHelp =
    "Number of threads of all runs together; does not affect the results";

struct RunCommand {
  std::string run_file;
  std::optional<std::string> out;
  bool force = false;
  bool resume = false;
  double checkpoint_every = 10;               // seconds
  std::filesystem::path results;              // directory of the results
  std::optional<server::ResultsClaim> claim;  // of them
  std::string mode = "abstract";
  bool check = false;
  std::vector<std::string> assignments;
  std::vector<std::string> data;  // --data
  std::size_t threads = available_processors();
  TrainerArguments trainer;
  std::size_t workers = 1;        // trainer programs
  std::size_t rank_timeout = 60;  // seconds
  std::string log_level = "warning";
};

CLI::App* add_run(CLI::App& app, RunCommand& options);
// Returns the exit code. If an MPI launcher has started several processes, they share the simulation.
int run_simulation(RunCommand& options, const std::string& program);

}  // namespace fedge::apps
