#include "server/backup/backup.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/crypto/random.h"
#include "core/platform/files.h"
#include "protocol/chunks/stored_files.h"
#include "server/access/calendar.h"
#include "server/backup/backup_files.h"
#include "server/backup/backup_lock.h"
#include "server/backup/snapshot.h"
#include "server/contact/key_rotation.h"
#include "server/data_directory.h"
#include "server/store/detail/database.h"
#include "server/store/detail/enrolment_store.h"
#include "server/store/enrolment_file.h"
#include "server/store/journal_reader.h"
#include "server/store/saved_state.h"
#include "server/store/sqlite_store.h"

namespace fedge::server {
namespace {

// A run that ends while it is copied takes its objects along; the next attempt finds it ended.
constexpr int kAttempts = 6;
constexpr const char* kCopiedFiles[] = {
    kNextKeyFile, kKeyFile,       "noise.key",   "enrolment.json.migrated", "address",
    "addresses",  "api-cert.pem", "api-key.pem", "directory-nodes"};
constexpr const char* kMarkText =
    "This directory is a copy of a coordinator's data. 'fedge restore' removes this file.\n";

// The directory in which the backup is made, until it has its name.
class Unfinished {
 public:
  static Result<Unfinished> create(const std::filesystem::path& out) {
    const auto parent = out.has_parent_path() ? out.parent_path() : std::filesystem::path(".");
    auto path = parent / ("." + out.filename().string() + ".unfinished-" + random_hex(4));
    if (::mkdir(path.c_str(), 0700) != 0) return system_error("cannot create", path, errno);
    return Unfinished(std::move(path));
  }
  Unfinished(Unfinished&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Unfinished& operator=(Unfinished&&) = delete;
  ~Unfinished() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  // Gives the backup its name, unless there is such a file already.
  Result<void> finish(const std::filesystem::path& out) {
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, out.c_str(), RENAME_NOREPLACE) != 0) {
      if (errno == EEXIST) return Error{ErrorCode::kRefused, out.string() + " exists already"};
      return system_error("cannot create", out, errno);
    }
    path_.clear();
    return sync_directory(out.has_parent_path() ? out.parent_path() : ".");
  }

 private:
  explicit Unfinished(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// Copies the objects of one run that has not ended.
class RunObjects {
 public:
  RunObjects(RunStore& store, RunNumber run, std::filesystem::path from, std::filesystem::path to)
      : store_(store), run_(run), from_(std::move(from)), to_(std::move(to)) {}

  // kStale: an object of the checkpoint is not there.
  Result<void> copy() {
    FEDGE_TRY(checkpoint, store_.checkpoint(run_));
    std::vector<protocol::Manifest> models;
    if (checkpoint) {
      FEDGE_TRY(named, objects_of(checkpoint->state));
      models = std::move(named);
    }
    FEDGE_TRY_VOID(copy_all("models", models, /*needed=*/true));
    FEDGE_TRY_VOID(read_journal());
    FEDGE_TRY_VOID(copy_all("models", sums_, /*needed=*/false));
    std::vector<protocol::Manifest> updates;
    for (auto& [client, manifest] : offered_) updates.push_back(std::move(manifest));
    FEDGE_TRY_VOID(copy_all("updates", updates, /*needed=*/false));
    return copy_halves();
  }

 private:
  // Finds each client's last update, and the secure sums. Most have been removed already.
  Result<void> read_journal() {
    return read_inputs(store_, run_, [this](const JournalStep& step) -> Result<void> {
      if (step.summed) sums_.push_back(step.summed->offer.update);
      if (!step.input) return {};
      if (std::holds_alternative<RunEngine::Committed>(*step.input)) sums_.clear();
      if (const auto* offered = std::get_if<RunEngine::Offered>(&*step.input))
        offered_.insert_or_assign(offered->client, offered->offer.update);
      return {};
    });
  }

  Result<void> copy_all(const char* folder, const std::vector<protocol::Manifest>& objects, bool needed) {
    if (objects.empty()) return {};
    FEDGE_TRY(files, protocol::StoredFiles::list(from_ / folder));
    FEDGE_TRY_VOID(make_directory(to_ / folder, 0700));
    for (const protocol::Manifest& object : objects) {
      if (!copied_.insert(object.id()).second) continue;
      const auto file = to_ / folder / (std::to_string(copied_.size()) + ".chunks");
      FEDGE_TRY(found, files.copy(object, file));
      if (found || !needed) continue;
      return Error{ErrorCode::kStale,
                   "object " + to_hex(object.id()) + " of run " + std::to_string(run_.value()) +
                       ", a model or its state, is missing or damaged in " + (from_ / folder).string()};
    }
    return {};
  }

  // Halves of split training: each is complete or absent.
  Result<void> copy_halves() {
    std::error_code error;
    std::filesystem::directory_iterator entry(from_ / "halves", error);
    if (error == std::errc::no_such_file_or_directory) return {};
    FEDGE_TRY_VOID(make_directory(to_ / "halves", 0700));
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (name.starts_with(".")) continue;  // being written
      const auto copied = copy_whole(entry->path(), to_ / "halves" / name);
      if (!copied && copied.error().code != ErrorCode::kNotFound) return copied.error();
    }
    if (error) return system_error("cannot list", from_ / "halves", error.value());
    return {};
  }

  RunStore& store_;
  RunNumber run_;
  std::filesystem::path from_;
  std::filesystem::path to_;
  std::map<ClientId, protocol::Manifest> offered_;
  std::vector<protocol::Manifest> sums_;
  std::set<protocol::ObjectId> copied_;
};

// One attempt to copy a data directory.
class DataCopy {
 public:
  DataCopy(const BackupOrder& order, std::filesystem::path to)
      : order_(order), from_(order.data_directory), to_(std::move(to)) {}

  Result<void> make() {
    FEDGE_TRY_VOID(make_directory(to_, 0700));
    FEDGE_TRY_VOID(write_file_atomic(to_ / kCopyMark, kMarkText, 0600));
    say("copying the databases");
    FEDGE_TRY(snapshot, take_snapshot(from_, to_));
    FEDGE_TRY_VOID(copy_audit_log(snapshot.audit));
    audit_ = {snapshot.audit.entries, snapshot.audit.head};
    for (const char* name : kCopiedFiles) FEDGE_TRY_VOID(copy_if_there(name));
    copy_fleet();
    FEDGE_TRY_VOID(check_book());
    FEDGE_TRY_VOID(copy_runs());
    for (const auto& [path, text] : snapshot.policies) {
      FEDGE_TRY_VOID(make_folders_of(to_, path));
      FEDGE_TRY_VOID(write_file_atomic(to_ / path, text, 0600));
    }
    return {};
  }

  AuditLog::Summary audit() const { return audit_; }
  std::vector<std::string> take_notes() { return std::move(notes_); }

 private:
  void say(const std::string& what) const {
    if (order_.progress) order_.progress(what);
  }

  Result<void> copy_audit_log(const AuditLog::Mark& mark) {
    for (const auto& file : mark.closed) {
      FEDGE_TRY(copied, copy_whole(file, to_ / file.filename()));
      (void)copied;
    }
    if (mark.active) {
      FEDGE_TRY(copied, copy_bytes(*mark.active, mark.bytes, to_ / "audit.log"));
      (void)copied;
    }
    if (!mark.head_file.empty()) FEDGE_TRY_VOID(write_file_atomic(to_ / "audit.head", mark.head_file, 0600));
    const auto verified = AuditLog(to_).verify();
    if (!verified)
      notes_.push_back("the audit log does not verify, in the data directory as in the backup: " +
                       verified.error().message);
    return {};
  }

  Result<void> copy_if_there(const char* name) {
    const auto copied = copy_whole(from_ / name, to_ / name);
    if (copied || (copied.error().code == ErrorCode::kNotFound && name != std::string(kKeyFile))) return {};
    return copied.error();
  }

  // Runs do not depend on what clients did lately.
  void copy_fleet() {
    const auto file = from_ / "fleet.db";
    if (!identity_of(file)) return;
    const auto fleet = Database::open_existing(file);
    const auto copied = fleet ? (*fleet)->copy_to(to_ / "fleet.db") : fleet.error();
    if (copied) return;
    for (const char* rest : {"", "-journal"}) {
      std::error_code ignored;
      std::filesystem::remove(to_ / ("fleet.db" + std::string(rest)), ignored);
    }
    notes_.push_back(file.string() + " is not in the backup: " + copied.error().message);
  }

  Result<void> check_book() const {
    FEDGE_TRY(book, EnrolmentStore::open(to_));
    FEDGE_TRY(rows, book->rows());
    // Not so if the key was replaced after the book was copied; the next attempt copies both anew.
    FEDGE_TRY(key, load_key(to_ / kKeyFile));
    const std::string& owner = rows.marks.coordinator;
    if (owner.empty() || (key && owner == to_hex(key->public_key()))) return {};
    const auto next = announced_key(to_);
    if (next && *next && owner == to_hex((*next)->public_key())) return {};
    return Error{ErrorCode::kStale, enrolment_path(from_).string() + " belongs to the coordinator with key " +
                                        owner + ", which is not the key in " + (from_ / kKeyFile).string()};
  }

  // Reads each journal, so that a damaged one is found now and not when it is needed.
  Result<void> copy_runs() {
    FEDGE_TRY(store, open_sqlite_store(run_store_path(to_)));
    FEDGE_TRY(runs, store->runs());
    for (const RunRecord& run : runs) {
      say("copying run " + std::to_string(run.number.value()));
      if (run.is_over()) {
        FEDGE_TRY_VOID(store->read_journal(run.number, [](const JournalEntry&) { return Result<void>(); }));
      } else {
        const std::string chunks = "runs/" + std::to_string(run.number.value()) + "/chunks";
        FEDGE_TRY_VOID(make_folders_of(to_, chunks + "/"));
        FEDGE_TRY_VOID(RunObjects(*store, run.number, from_ / chunks, to_ / chunks).copy());
      }
      FEDGE_TRY_VOID(copy_results(run.number));
    }
    return {};
  }

  Result<void> copy_results(RunNumber run) {
    const auto from = run_results(from_, run);
    std::error_code error;
    if (!std::filesystem::exists(std::filesystem::symlink_status(from, error))) return {};
    if (!std::filesystem::is_directory(std::filesystem::symlink_status(from, error)))
      return Error{ErrorCode::kRefused,
                   from.string() + " is not a directory; symbolic links are not followed"};
    FEDGE_TRY(files, list_files(from));
    for (const ListedFile& file : files) {
      const std::string path = "runs/" + std::to_string(run.value()) + "/results/" + file.path;
      if (!file.regular || !is_backup_path(path)) {
        notes_.push_back((from / file.path).string() + " is not in the backup: " +
                         (file.regular ? "its name has control characters" : "it is not a regular file"));
        continue;
      }
      FEDGE_TRY_VOID(make_folders_of(to_, path));
      const auto copied = copy_whole(from / file.path, to_ / path);
      if (!copied && copied.error().code != ErrorCode::kNotFound) return copied.error();
    }
    return {};
  }

  const BackupOrder& order_;
  std::filesystem::path from_;
  std::filesystem::path to_;
  AuditLog::Summary audit_;
  std::vector<std::string> notes_;
};

Result<void> check_order(const BackupOrder& order) {
  FEDGE_TRY_VOID(check_restored(order.data_directory));
  FEDGE_TRY_VOID(check_coordinator_data(order.data_directory));
  FEDGE_TRY_VOID(check_owner(order.data_directory / kKeyFile));
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(order.out, error)))
    return Error{ErrorCode::kRefused,
                 order.out.string() + " exists already; a backup never overwrites anything"};
  const auto data = std::filesystem::weakly_canonical(order.data_directory, error);
  const auto out = std::filesystem::weakly_canonical(order.out, error);
  if (std::mismatch(data.begin(), data.end(), out.begin(), out.end()).first == data.end())
    return invalid(order.out.string() + " is in the data directory; choose a place outside of it");
  if (!order.out.has_filename()) return invalid(order.out.string() + " must not end with a slash");
  return {};
}

Result<BackupManifest> describe_backup(const std::filesystem::path& data) {
  BackupManifest manifest;
  FEDGE_TRY(files, list_files(data));
  for (const ListedFile& file : files) {
    FEDGE_TRY(entry, hash_file(data / file.path));
    entry.path = file.path;
    manifest.files.push_back(std::move(entry));
  }
  return manifest;
}

}  // namespace

Result<BackupSummary> make_backup(const BackupOrder& order) {
  FEDGE_TRY_VOID(check_order(order));
  FEDGE_TRY(only, BackupLock::acquire(order.data_directory));
  // Without a coordinator, keeps one from starting meanwhile.
  const auto stopped = DirectoryLock::acquire(order.data_directory);
  if (!stopped && stopped.error().code != ErrorCode::kUnavailable) return stopped.error();
  FEDGE_TRY(unfinished, Unfinished::create(order.out));
  const std::string created = calendar_text(calendar_now());
  const auto data = unfinished.path() / kBackupData;
  std::optional<DataCopy> copy;
  for (int attempt = 1;; ++attempt) {
    copy.emplace(order, data);
    const auto made = copy->make();
    if (made) break;
    if (made.error().code != ErrorCode::kStale) return made.error();
    if (attempt == kAttempts)
      return Error{ErrorCode::kUnavailable,
                   made.error().message +
                       "; if the coordinator has paused this run for that reason, stop the run (fedge run "
                       "stop) and make the backup again"};
    std::error_code error;
    std::filesystem::remove_all(data, error);
    if (error) return system_error("cannot remove", data, error.value());
  }
  FEDGE_TRY(manifest, describe_backup(data));
  manifest.version = order.version;
  manifest.created = created;
  manifest.running = !stopped;
  manifest.audit_entries = copy->audit().entries;
  manifest.audit_head = copy->audit().head;
  FEDGE_TRY_VOID(write_file_atomic(unfinished.path() / kManifestName, encode_manifest(manifest), 0600));
  FEDGE_TRY_VOID(sync_tree(unfinished.path()));
  FEDGE_TRY(verified, verify_backup(unfinished.path(), order.version, order.progress));
  FEDGE_TRY_VOID(unfinished.finish(order.out));
  verified.notes = copy->take_notes();
  return verified;
}

}  // namespace fedge::server
