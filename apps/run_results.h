// RunResults: what a coordinator leaves behind of each run it leads, in files (server/report/run_output.h)
// and on the terminal: one run that was given on the command line as a table, the others as lines of the log.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/report/console.h"
#include "server/report/run_output.h"
#include "server/store/run_store.h"

namespace fedge::apps {

// The run file of the run in the data directory that has begun, has not ended and is the same; nothing if
// there is none.
Result<std::optional<std::string>> run_going_on(const std::filesystem::path& data_directory,
                                                const run::RunConfig& config);

class RunResults {
 public:
  explicit RunResults(std::filesystem::path data_directory) : data_directory_(std::move(data_directory)) {}

  // This run is shown as a table; its results go to this directory instead of the data directory's.
  void show(server::RunNumber run, std::filesystem::path out) { shown_ = {run, std::move(out)}; }

  Result<void> begin(const server::RunRecord& run, const run::RunConfig& config,
                     const std::vector<server::RoundMetrics>& history);
  Result<void> add(server::RunNumber run, const server::RoundMetrics& metrics);
  // After the last round.
  Result<void> finish(server::RunNumber run, const std::vector<server::FinalModel>& models);
  bool leads(server::RunNumber run) const { return outputs_.contains(run); }
  void forget(server::RunNumber run) { outputs_.erase(run); }
  // Of the run that is shown, once it has finished; otherwise empty.
  const std::string& summary() const { return summary_; }

 private:
  struct Shown {
    server::RunNumber run;
    std::filesystem::path out;
  };
  bool is_shown(server::RunNumber run) const { return shown_ && shown_->run == run; }

  std::filesystem::path data_directory_;
  std::optional<Shown> shown_;
  std::map<server::RunNumber, server::RunOutput> outputs_;
  std::unique_ptr<server::RoundTable> table_;
  std::string summary_;
};

}  // namespace fedge::apps
