#include "server/backup/snapshot.h"

#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/platform/files.h"
#include "server/backup/backup_manifest.h"
#include "server/store/detail/database.h"
#include "server/store/enrolment_file.h"
#include "server/store/sqlite_store.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMaxPolicy = 4 << 20;
constexpr std::chrono::seconds kLockPatience{60};
constexpr std::chrono::microseconds kTryAgain{500};

// Opens a database that every coordinator's data directory has.
Result<std::unique_ptr<Database>> open_present(const std::filesystem::path& path) {
  auto database = Database::open_existing(path);
  if (database || database.error().code != ErrorCode::kNotFound) return database;
  return Error{ErrorCode::kUnavailable, path.string() + " is missing; put it back before you make a backup"};
}

// Locks the database for writing. Tries more often than SQLite does, so that processes that write without a
// pause do not keep it out.
Result<Transaction> lock_soon(const Database& database) {
  const auto end = std::chrono::steady_clock::now() + kLockPatience;
  database.wait_for_others(std::chrono::milliseconds(0));
  for (;;) {
    auto locked = Transaction::begin(database);
    if (locked || !database.is_busy() || std::chrono::steady_clock::now() >= end) return locked;
    std::this_thread::sleep_for(kTryAgain);
  }
}

// The tracks of all runs, which nobody changes while this object lives.
struct HeldPolicies {
  std::vector<std::unique_ptr<FileLock>> locks;
  std::map<std::string, std::string> texts;
};

Result<HeldPolicies> hold_policies(const std::filesystem::path& data_directory) {
  HeldPolicies held;
  std::error_code error;
  std::filesystem::directory_iterator run(data_directory / "runs", error);
  if (error == std::errc::no_such_file_or_directory) return held;
  for (; !error && run != std::filesystem::directory_iterator(); run.increment(error)) {
    const std::string path = "runs/" + run->path().filename().string() + "/policy.toml";
    if (!is_backup_path(path) || !identity_of(data_directory / path)) continue;
    const auto lock_file = run->path() / "policy.lock";
    held.locks.push_back(std::make_unique<FileLock>(lock_file));
    if (!held.locks.back()->held()) return system_error("cannot lock", lock_file, errno);
    FEDGE_TRY(text, read_file(data_directory / path, kMaxPolicy));
    held.texts.emplace(path, std::move(text));
  }
  if (error) return system_error("cannot list", data_directory / "runs", error.value());
  return held;
}

}  // namespace

// Every change of clients, runs or tracks is recorded in the audit log before it is made. With the databases
// and tracks locked, the log therefore has an entry for each change that the copies contain. It may also have
// the entry of a run that is not in its database yet, as after a crash.
Result<Snapshot> take_snapshot(const std::filesystem::path& data_directory, const std::filesystem::path& to) {
  FEDGE_TRY(policies, hold_policies(data_directory));
  FEDGE_TRY(book, open_present(enrolment_path(data_directory)));
  FEDGE_TRY(runs, open_present(run_store_path(data_directory)));
  FEDGE_TRY(reader, open_present(run_store_path(data_directory)));
  FEDGE_TRY(book_held, lock_soon(*book));
  Snapshot snapshot;
  {
    FEDGE_TRY(runs_held, lock_soon(*runs));
    FEDGE_TRY(mark, AuditLog(data_directory).mark());
    snapshot.audit = std::move(mark);
    // Later reads of this connection show the present moment, whatever is written meanwhile.
    FEDGE_TRY_VOID(reader->execute("BEGIN"));
    FEDGE_TRY(fixed, reader->number("SELECT count(*) FROM sqlite_schema"));
    (void)fixed;
  }
  {
    // The connection that locks the book may not be the one that is copied.
    FEDGE_TRY(book_reader, open_present(enrolment_path(data_directory)));
    FEDGE_TRY_VOID(book_reader->copy_to(enrolment_path(to)));
  }
  const auto release = [](Transaction) {};
  release(std::move(book_held));
  policies.locks.clear();
  FEDGE_TRY_VOID(reader->copy_to(run_store_path(to)));
  snapshot.policies = std::move(policies.texts);
  return snapshot;
}

}  // namespace fedge::server
