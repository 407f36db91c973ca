#include "server/backup/restore.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/config/document.h"
#include "core/platform/files.h"
#include "run/run_config.h"
#include "server/access/calendar.h"
#include "server/audit_log.h"
#include "server/backup/backup_files.h"
#include "server/backup/backup_lock.h"
#include "server/contact/key_rotation.h"
#include "server/coordinator/run_parts.h"
#include "server/live/fleet_file.h"
#include "server/store/sqlite_store.h"

namespace fedge::server {
namespace {

constexpr const char* kRestoreMarkText =
    "A restore of this directory began and has not ended. Empty the directory and restore again.\n";

Result<bool> is_empty_directory(const std::filesystem::path& directory) {
  std::error_code error;
  const bool empty = std::filesystem::is_empty(directory, error);
  if (error) return system_error("cannot list", directory, error.value());
  return empty;
}

bool is_within(const std::filesystem::path& path, const std::filesystem::path& directory) {
  std::error_code ignored;
  const auto inner = std::filesystem::weakly_canonical(path, ignored);
  const auto outer = std::filesystem::weakly_canonical(directory, ignored);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

// The directory that is being restored. Unless complete() is called, it is as before in the end.
class Target {
 public:
  static Result<Target> take(const std::filesystem::path& directory) {
    const bool fresh = !identity_of(directory);
    FEDGE_TRY_VOID(make_directory(directory, 0700));
    FEDGE_TRY(empty, is_empty_directory(directory));
    if (!empty) return why_not_empty(directory);
    FEDGE_TRY(lock, DirectoryLock::acquire(directory));
    Target target(directory, fresh, std::move(lock));
    FEDGE_TRY_VOID(write_file_atomic(directory / kCopyMark, kRestoreMarkText, 0600));
    return target;
  }
  Target(Target&& other) noexcept
      : path_(std::exchange(other.path_, {})), fresh_(other.fresh_), lock_(std::move(other.lock_)) {}
  Target& operator=(Target&&) = delete;
  ~Target() {
    if (path_.empty()) return;
    std::error_code ignored;
    for (std::filesystem::directory_iterator entry(path_, ignored), end; !ignored && entry != end;
         entry.increment(ignored)) {
      std::error_code busy;
      std::filesystem::remove_all(entry->path(), busy);
    }
    if (fresh_) std::filesystem::remove(path_, ignored);
  }

  Result<void> complete() {
    FEDGE_TRY_VOID(sync_tree(path_));
    std::error_code error;
    std::filesystem::remove(path_ / kCopyMark, error);
    if (error) return system_error("cannot remove", path_ / kCopyMark, error.value());
    return sync_directory(std::exchange(path_, {}));
  }

 private:
  Target(std::filesystem::path path, bool fresh, DirectoryLock lock)
      : path_(std::move(path)), fresh_(fresh), lock_(std::move(lock)) {}

  static Error why_not_empty(const std::filesystem::path& directory) {
    if (const auto unfinished = check_restored(directory); !unfinished)
      return Error{ErrorCode::kRefused,
                   directory.string() + " has the files of a restore that did not end; empty it first"};
    if (identity_of(directory / "lock"))
      if (const auto lock = DirectoryLock::acquire(directory);
          !lock && lock.error().code == ErrorCode::kUnavailable)
        return {ErrorCode::kRefused, lock.error().message + ", such as a coordinator, and is not empty"};
    return {ErrorCode::kRefused,
            directory.string() + " is not empty; a backup is restored into an empty or a new directory only"};
  }

  std::filesystem::path path_;
  bool fresh_;
  DirectoryLock lock_;
};

// Compares each copy with the manifest again: the backup may have changed since it was verified.
Result<void> copy_back(const RestoreOrder& order, const std::vector<BackupFile>& files) {
  for (const BackupFile& file : files) {
    if (file.path == kCopyMark) continue;
    // A new key draws other noise, whatever the numbers of later runs are.
    if (file.path == "noise.key" && !order.nothing_since) continue;
    const auto to = order.data_directory / file.path;
    FEDGE_TRY_VOID(make_folders_of(order.data_directory, file.path));
    FEDGE_TRY(copied, copy_whole(order.backup / kBackupData / file.path, to));
    copied.path = file.path;
    if (copied != file)
      return Error{ErrorCode::kCorrupt,
                   "the backup's file " + file.path + " has changed while it was being restored"};
  }
  return {};
}

// The clients may have forgotten the announced key since the backup was made, or know another one.
Result<void> forget_kept_keys(const std::filesystem::path& data_directory) {
  if (!identity_of(data_directory / "fleet.db")) return {};
  auto fleet = FleetFile::open(data_directory);
  auto all = fleet ? (*fleet)->all() : Result<std::vector<ClientActivity>>(fleet.error());
  if (!all) return {};  // the coordinator sets a damaged file aside
  for (ClientActivity& activity : *all) {
    activity.kept_key.clear();
    activity.kept_by.clear();
  }
  return (*fleet)->put(*all);
}

// Ends the runs that must not be repeated. They have no results: to write these, a coordinator might have to
// compute a model again.
Result<std::vector<RunRecord>> end_runs(const std::filesystem::path& data_directory,
                                        const std::string& created) {
  FEDGE_TRY(store, open_sqlite_store(run_store_path(data_directory)));
  FEDGE_TRY(runs, store->open_runs());
  std::vector<RunRecord> ended;
  for (RunRecord& run : runs) {
    const std::string why = why_not_repeated(run);
    if (why.empty()) continue;
    run.reason = "the data directory was restored from a backup of " + created + ", and " + why;
    FEDGE_TRY_VOID(AuditLog(data_directory)
                       .append({operator_name(),
                                "run.stopped",
                                "run " + run.name,
                                {{"run_id", text_of(run.id)},
                                 {"run", std::to_string(run.number.value())},
                                 {"reason", run.reason}}}));
    FEDGE_TRY_VOID(store->set_status(run.number, RunStatus::kStopped, run.reason, calendar_now()));
    remove_chunks(data_directory, run.number);
    ended.push_back(std::move(run));
  }
  return ended;
}

}  // namespace

std::string why_not_repeated(const RunRecord& run) {
  const auto document = config::parse_toml(run.document, "", config::PlaceStyle::kStored);
  const auto config = document ? run::read_run_config(*document) : document.error();
  // What cannot be read may be a private run.
  if (!config) return "its run file cannot be read by this version";
  if (config->privacy.on())
    return "models of it with differential privacy may have been released since then: repeated rounds would "
           "spend more privacy than its budget";
  if (config->secure.on)
    return "sums of it may have been released since then: repeated rounds would sum the same updates of "
           "other members";
  return "";
}

Result<RestoreSummary> restore_backup(const RestoreOrder& order) {
  if (order.skipped_numbers > kMostSkippedNumbers)
    return invalid("at most " + std::to_string(kMostSkippedNumbers) + " client numbers can be left out");
  FEDGE_TRY(verified, verify_backup(order.backup, order.version, order.progress));
  const BackupManifest& manifest = verified.manifest;
  if (order.nothing_since && manifest.running)
    return Error{ErrorCode::kRefused,
                 "a coordinator was running while this backup was made, and went on afterwards; restore the "
                 "backup without --nothing-since"};
  if (is_within(order.data_directory, order.backup))
    return invalid(order.data_directory.string() + " is in the backup; choose another directory");
  FEDGE_TRY(target, Target::take(order.data_directory));
  if (order.progress) order.progress("copying " + std::to_string(manifest.files.size()) + " files");
  FEDGE_TRY_VOID(copy_back(order, manifest.files));
  RestoreSummary summary{.backup = verified};
  summary.announced_key = identity_of(order.data_directory / kNextKeyFile).has_value();
  if (!order.nothing_since) {
    FEDGE_TRY(ended, end_runs(order.data_directory, manifest.created));
    summary.ended = std::move(ended);
    summary.skipped_numbers = order.skipped_numbers;
  }
  if (!order.nothing_since) FEDGE_TRY_VOID(forget_kept_keys(order.data_directory));
  FEDGE_TRY(withdrawn, Enrolment(order.data_directory)
                           .restored({.details = {{"backup", manifest.created},
                                                  {"manifest", verified.hash},
                                                  {"entries", std::to_string(manifest.audit_entries)},
                                                  {"nothing_since", order.nothing_since ? "yes" : "no"},
                                                  {"runs_stopped", std::to_string(summary.ended.size())}},
                                      .nothing_since = order.nothing_since,
                                      .skipped_numbers = order.skipped_numbers}));
  summary.withdrawn = withdrawn;
  FEDGE_TRY_VOID(target.complete());
  return summary;
}

}  // namespace fedge::server
