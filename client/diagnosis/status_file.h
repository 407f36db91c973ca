// StatusFile: the daemon's current state for people: STATE/status.json, replaced as a whole, read by
// `fedge-client status`. The daemon never relies on it: the file is not synced, and a damaged one is
// ignored. Not thread-safe.
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

// The work of a run whose data is a stream that has no segment for training yet.
inline constexpr const char* kAwaitsStream = "waiting_for_stream";

struct RunActivity {
  std::string name;            // empty: not described since the daemon started
  std::string work;            // ClientEngine::Part's, or kAwaitsStream
  std::optional<TaskId> task;  // the current task
  std::string reason = {};     // why the run is rejected; empty if it is not
  bool operator==(const RunActivity&) const = default;
};

struct Activity {
  std::string link;               // ClientEngine::link_name(), or "starting"
  std::vector<RunActivity> runs;  // at most kMaxRuns
  bool operator==(const Activity&) const = default;
};

// The number of streams that are shown.
inline constexpr std::size_t kMaxStreams = 64;

// The stream of a sensor (`run --stream`). Times are seconds since 1970.
struct StreamActivity {
  std::string name;
  std::string state;         // "reading" or "ended"
  std::string source;        // its path
  std::int64_t kept = 0;     // segments since the daemon started
  std::int64_t kept_at = 0;  // of the last one; 0: none
  std::int64_t bytes = 0;    // of all its segments, on disk
  std::string fault = {};    // why samples or a segment were lost last; empty: nothing was
  std::int64_t fault_at = 0;
  bool operator==(const StreamActivity&) const = default;
};

struct DaemonStatus {
  Activity activity;
  std::vector<StreamActivity> streams;  // at most kMaxStreams
  std::int64_t pid = 0;
  std::int64_t link_since = 0;  // seconds since 1970, like all times here
  std::int64_t written = 0;
  std::string link_reason;  // of the last disconnect or revocation
  // The last verdict on an update; empty: none since the daemon started.
  std::string verdict;  // "accepted", "refused", "dropped" or "failed"
  std::int64_t verdict_round = 0;
  std::int64_t verdict_at = 0;
  std::string verdict_reason;
  std::int64_t accepted = 0;  // number of updates since the daemon started
};

std::filesystem::path status_file(const std::filesystem::path& state_directory);
// kNotFound if no daemon has run here, kCorrupt if it is damaged.
Result<DaemonStatus> read_status(const std::filesystem::path& state_directory);

// Whether a daemon is running in this directory.
bool daemon_runs(const std::filesystem::path& state_directory);

class StatusFile {
 public:
  explicit StatusFile(std::filesystem::path state_directory);
  // Takes an event of the daemon.
  void note(const Event& event);
  void set(Activity activity);
  bool changed() const { return changed_; }
  // Ignores errors: a full disk must not stop the daemon.
  void write();

 private:
  void note_stream(const Event& event);

  std::filesystem::path directory_;
  DaemonStatus status_;
  bool changed_ = true;
};

}  // namespace fedge::client
