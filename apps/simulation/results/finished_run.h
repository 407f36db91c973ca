// The results of one finished run, as its directory holds them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/report/metrics.h"
#include "sim/participants/participants.h"

namespace fedge::apps {

struct FinishedRun {
  std::filesystem::path directory;
  std::string name;  // run.name
  std::uint64_t seed = 0;
  std::vector<server::RoundMetrics> rounds;
  sim::Participants::Summary clients;  // empty without simulation.participants
  bool complete = false;               // it has ended; otherwise it is under way, or was interrupted
  std::string failure;                 // why the run failed; empty if it did not
};

inline constexpr const char* kCheckpoints = "checkpoint";  // directory in the results

// Whether the directory has the results of a run that has ended, successfully or not.
bool is_complete(const std::filesystem::path& results);
// Reads run.toml, metrics.jsonl and the header of model.safetensors. The error names the file.
Result<FinishedRun> read_finished_run(const std::filesystem::path& directory);

}  // namespace fedge::apps
