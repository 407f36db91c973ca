// SweepRuns: executes the runs of a sweep as processes of `fedge-sim run`, several at a time. A run with
// results is skipped, an interrupted one is continued. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/simulation/sweep/sweep_file.h"
#include "core/config/document.h"
#include "core/platform/processes.h"
#include "core/result.h"

namespace fedge::apps {

struct SweepRunOptions {
  std::filesystem::path program;  // that the processes run
  std::string run_file;
  std::vector<std::string> data;     // --data
  std::vector<std::string> further;  // options of `fedge-sim run`
  std::size_t threads = 1;           // of all runs together
  std::size_t jobs = 1;              // runs at a time
  bool force = false;                // overwrite results of other runs
  std::function<bool()> interrupted;
};

struct PlannedRun {
  std::string name;
  std::filesystem::path results;  // directory
  Settings settings;
  std::string canonical = {};  // the run file as executed; empty if the results are complete
  bool continues = false;      // interrupted, it can be continued
  bool complete = false;       // the results are there
  std::string way = {};        // "--resume" or "--force"
};

class SweepRuns {
 public:
  explicit SweepRuns(SweepRunOptions options) : options_(std::move(options)) {}

  // Checks the run file with these settings. The error begins with the run's name.
  Result<void> check(const std::string& name, const Settings& settings);
  // Reads the run file with these settings and this seed, and looks for results. kRefused: the directory
  // holds the results of another run, and `force` is not set. Other errors as check().
  Result<PlannedRun> plan(std::string name, std::filesystem::path results, Settings settings,
                          std::uint64_t seed);
  // Executes those that are not complete, in order. Calls on_done(i) once for each run that has results, at
  // first for those that are complete; its error ends the execution. A run that fails without results ends
  // it too, after the runs that have begun. kUnavailable: interrupted.
  Result<void> execute(std::span<const PlannedRun> runs,
                       const std::function<Result<void>(std::size_t)>& on_done,
                       const std::function<void()>& on_start);
  std::size_t running() const { return processes_.running(); }

 private:
  // Holds what a run file with certain settings says, whatever the seed.
  struct Checked {
    std::string canonical;
    bool continues = false;  // an interrupted run can be continued
  };
  Result<Checked> checked(const std::string& name, const Settings& settings);
  // Whether the results are those of this run, from its beginning to its end.
  bool has_results(const PlannedRun& run) const;
  bool is_done(const std::filesystem::path& results, const config::Document& document) const;
  Result<void> start(const PlannedRun& run);
  Result<void> take(const PlannedRun& run, const ChildProcesses::Ended& ended) const;

  SweepRunOptions options_;
  std::map<Settings, Checked> checked_;
  ChildProcesses processes_;  // by the names of their runs
};

}  // namespace fedge::apps
