// StatusFile: what the daemon is doing, for people: STATE/status.json, replaced whole, read by `fedge-client
// status`. Nothing depends on it: it is not synced, a damaged one is ignored. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "core/result.h"

namespace fedge::client {

struct RunActivity {
  std::string name;            // empty: it has not been described since the daemon began
  std::string work;            // ClientEngine::Part's
  std::optional<TaskId> task;  // in hand
  bool operator==(const RunActivity&) const = default;
};

struct Activity {
  std::string link;               // ClientEngine::link_name(), or "starting"
  std::vector<RunActivity> runs;  // at most kMaxRuns
  bool operator==(const Activity&) const = default;
};

struct DaemonStatus {
  Activity activity;
  std::int64_t pid = 0;
  std::int64_t link_since = 0;  // seconds since 1970, as all times here
  std::int64_t written = 0;
  std::string link_reason;  // of the last loss
  // The last update that was judged; empty: none since the daemon began.
  std::string verdict;  // "accepted", "refused", "dropped" or "failed"
  std::int64_t verdict_round = 0;
  std::int64_t verdict_at = 0;
  std::string verdict_reason;
  std::int64_t accepted = 0;  // updates, since the daemon began
};

std::filesystem::path status_file(const std::filesystem::path& state_directory);
// kNotFound if no daemon has run here, kCorrupt if it is damaged.
Result<DaemonStatus> read_status(const std::filesystem::path& state_directory);

// Whether a daemon is at work in this directory.
bool daemon_runs(const std::filesystem::path& state_directory);

class StatusFile {
 public:
  explicit StatusFile(std::filesystem::path state_directory);
  // What the engine reports.
  void note(const Event& event);
  void set(Activity activity);
  bool changed() const { return changed_; }
  // A full disk costs the status, nothing else.
  void write();

 private:
  std::filesystem::path directory_;
  DaemonStatus status_;
  bool changed_ = true;
};

}  // namespace fedge::client
