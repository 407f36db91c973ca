// Restoring a backup into an empty directory. What may have happened after the backup was made is unknown, so
// the restored directory does not allow what could then happen twice (docs/RELIABILITY.md, "Restored
// backups"). Until everything is durable, the directory has a mark with which no coordinator starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/backup/backup.h"
#include "server/enrolment.h"
#include "server/store/run_store.h"

namespace fedge::server {

inline constexpr std::uint32_t kSkippedNumbers = 1000;
inline constexpr std::uint32_t kMostSkippedNumbers = 1'000'000;

struct RestoreOrder {
  std::filesystem::path backup;
  std::filesystem::path data_directory;  // empty or missing
  std::string version;                   // of this program
  // The operator's word that the coordinator did not run after the backup was made. Only a backup that was
  // made without a running coordinator allows it.
  bool nothing_since = false;
  std::uint32_t skipped_numbers = kSkippedNumbers;
  BackupProgress progress = {};
};

struct RestoreSummary {
  BackupSummary backup;
  std::vector<RunRecord> ended;  // runs that were not continued
  Withdrawn withdrawn;
  std::uint32_t skipped_numbers = 0;
  bool announced_key = false;  // the backup has one
};

// kCorrupt: the backup is damaged; nothing was written. kRefused: the directory is not empty, a coordinator
// uses it, or `nothing_since` cannot be true. After an error the directory is as it was before.
Result<RestoreSummary> restore_backup(const RestoreOrder& order);

// Returns why a run must not continue from a copy that may be older than its last model; empty if it may.
std::string why_not_repeated(const RunRecord& run);

}  // namespace fedge::server
