// RunOutput: what a run leaves behind in its output directory: metrics.jsonl (a line a round, as it
// happens), and at the end metrics.csv, model.safetensors, run.toml (the file as it was run) and
// report.html; with disagreements between clients tracks.csv and a model for each track besides. An earlier
// run's files there are replaced.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "run/run_config.h"
#include "server/report/final_model.h"
#include "server/report/metrics.h"

namespace fedge::server {

class RunOutput {
 public:
  // Makes the directory and an empty metrics.jsonl, and writes run.toml.
  static Result<RunOutput> create(const std::filesystem::path& directory, const run::RunConfig& config);

  Result<void> add(const RoundMetrics& metrics);
  // The first model goes to model.safetensors, those of further tracks to tracks/NAME.safetensors.
  Result<void> finish(std::span<const FinalModel> models);
  // For the terminal: the result and where it lies.
  std::string summary() const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  RunOutput(std::filesystem::path directory, run::RunConfig config, std::FILE* lines)
      : directory_(std::move(directory)), config_(std::move(config)), lines_(lines) {}

  std::filesystem::path directory_;
  run::RunConfig config_;
  std::unique_ptr<std::FILE, Close> lines_;
  std::vector<RoundMetrics> rounds_;
};

// Writes report.html and metrics.csv again from metrics.jsonl and run.toml.
Result<void> rewrite_report(const std::filesystem::path& directory);

}  // namespace fedge::server
