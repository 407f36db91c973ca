// RunOutput writes a run's output directory. It writes run.toml (the run file as executed) at the start, a
// line of metrics.jsonl after each round, and at the end metrics.csv, model.safetensors and report.html. A
// run with tracks also has tracks.csv and one model per track; one with run.keep_models models of earlier
// rounds; one with run.tensorboard an event file, which grows with the rounds. Files of an earlier run are
// replaced.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "run/run_config.h"
#include "server/report/event_file.h"
#include "server/report/final_model.h"
#include "server/report/metrics.h"

namespace fedge::server {

class RunOutput {
 public:
  // Creates the directory and an empty metrics.jsonl, and writes run.toml. `version` is the program's. No
  // other process may be writing into the directory: results_place.h. Of the results that are there, the
  // first `rounds` rounds stay: the run continues after them. kCorrupt if metrics.jsonl does not have them.
  static Result<RunOutput> create(const std::filesystem::path& directory, const run::RunConfig& config,
                                  const std::string& version, std::uint64_t rounds = 0);

  Result<void> add(const RoundMetrics& metrics);
  // Writes the models of a round that run.keep_models keeps. Any thread.
  Result<void> keep(std::uint64_t round, std::span<const FinalModel> models) const;
  const std::vector<RoundMetrics>& rounds() const { return rounds_; }
  // Writes the first model to model.safetensors, the models of further tracks to tracks/NAME.safetensors.
  // `failure`: why the run failed; empty if it did not.
  Result<void> finish(std::span<const FinalModel> models, const std::string& failure);
  // Returns the results and file paths as text for the terminal.
  std::string summary() const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  // What the clients' evaluation says.
  std::string summary_of(const RoundMetrics& round) const;
  RunOutput(std::filesystem::path directory, run::RunConfig config, std::string version, std::FILE* lines)
      : directory_(std::move(directory)),
        config_(std::move(config)),
        version_(std::move(version)),
        lines_(lines) {}

  std::filesystem::path directory_;
  run::RunConfig config_;
  std::string version_;
  std::unique_ptr<std::FILE, Close> lines_;
  std::optional<EventFile> events_;
  std::vector<RoundMetrics> rounds_;
};

// Why the run with these results failed, as its model's file says; empty if it did not, or has no model.
std::string failure_of(const std::filesystem::path& directory);

// Writes report.html and metrics.csv again from metrics.jsonl and run.toml, and with `tensorboard` the event
// file, whether the run has one or not.
Result<void> rewrite_report(const std::filesystem::path& directory, bool tensorboard = false);

}  // namespace fedge::server
