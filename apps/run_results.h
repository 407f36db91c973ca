// RunResults: the results of each run that a coordinator executes, in files (server/report/run_output.h)
// and on the terminal. The terminal shows the run of the command line as a table, other runs as log lines.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/result.h"
#include "server/report/console.h"
#include "server/report/run_output.h"
#include "server/store/run_store.h"

namespace fedge::apps {

// The stored run file of an unfinished run with the same configuration in the data directory; nothing if
// there is none.
Result<std::optional<std::string>> run_going_on(const std::filesystem::path& data_directory,
                                                const run::RunConfig& config);

// Returns whether a run, of several or with this number, is pending or running in the data directory: a
// coordinator that starts there continues it.
Result<bool> would_continue(const std::filesystem::path& data_directory,
                            std::optional<server::RunNumber> number);

class RunResults {
 public:
  // `log` receives the events of runs that are not shown.
  RunResults(std::filesystem::path data_directory, std::function<void(const Event&)> log)
      : data_directory_(std::move(data_directory)), log_(std::move(log)) {}

  // Shows this run as a table and writes its results to this directory instead of the data directory.
  void show(server::RunNumber run, std::filesystem::path out) { shown_ = {run, std::move(out)}; }

  Result<void> begin(const server::RunRecord& run, const run::RunConfig& config,
                     const std::vector<server::RoundMetrics>& history);
  Result<void> add(server::RunNumber run, const server::RoundMetrics& metrics);
  // Writes the models of a round that run.keep_models keeps. From any thread, between begin() and forget().
  Result<void> keep(server::RunNumber run, RoundNumber round, const std::vector<server::FinalModel>& models);
  // Call after the last round.
  Result<void> finish(server::RunNumber run, const std::vector<server::FinalModel>& models,
                      const std::string& failure);
  bool leads(server::RunNumber run) const { return outputs_.contains(run); }
  void forget(server::RunNumber run) {
    const std::lock_guard lock(mutex_);
    outputs_.erase(run);
  }
  // Summary of the shown run once it has finished; otherwise empty.
  const std::string& summary() const { return summary_; }

 private:
  struct Shown {
    server::RunNumber run;
    std::filesystem::path out;
  };
  bool is_shown(server::RunNumber run) const { return shown_ && shown_->run == run; }

  std::filesystem::path data_directory_;
  std::function<void(const Event&)> log_;
  std::optional<Shown> shown_;
  std::mutex mutex_;  // for keep(): the map does not change meanwhile
  std::map<server::RunNumber, server::RunOutput> outputs_;
  std::unique_ptr<server::RoundTable> table_;
  std::string summary_;
};

}  // namespace fedge::apps
