#include "server/store/sqlite_store.h"

#include <cstdint>
#include <utility>

#include "server/store/detail/row_checksums.h"
#include "server/store/detail/run_schema.h"
#include "server/store/detail/sqlite_run_store.h"

namespace fedge::server {

Result<void> SqliteStore::prepare() {
  // Another program's file must not be modified.
  FEDGE_TRY(version, database_->number("PRAGMA user_version"));
  FEDGE_TRY(tables, database_->number("SELECT count(*) FROM sqlite_schema"));
  if (tables > 0 || version > 0) FEDGE_TRY_VOID(database_->check_kind(kRunsFile));
  FEDGE_TRY_VOID(database_->execute("PRAGMA journal_mode = WAL"));
  FEDGE_TRY_VOID(database_->execute("PRAGMA synchronous = FULL"));
  FEDGE_TRY(damage, database_->damage());
  if (!damage.empty()) return damaged("the database (" + damage + ")");
  return migrate(version);
}

// Runs all steps in one transaction: a process that opens the database meanwhile waits and finds them done.
Result<void> SqliteStore::migrate(std::int64_t from) const {
  if (from == kRunsFile.version) return {};
  FEDGE_TRY(transaction, Transaction::begin(*database_));
  FEDGE_TRY(version, database_->number("PRAGMA user_version"));
  for (auto step = static_cast<std::size_t>(version); step < kMigrations.size(); ++step)
    FEDGE_TRY_VOID(database_->execute(kMigrations[step]));
  FEDGE_TRY_VOID(database_->set_kind(kRunsFile));
  return transaction.commit();
}

Result<RunRecord> SqliteStore::read(const Statement& row) const {
  RunRecord run{.number = RunNumber(row.integer(0)),
                .id = RunId(static_cast<std::uint64_t>(row.integer(1))),
                .name = row.text(2),
                .document = row.text(3),
                .status = static_cast<RunStatus>(row.integer(4)),
                .reason = row.text(5),
                .submitted = row.integer(6),
                .started = row.integer(7),
                .ended = row.integer(8)};
  run.project = row.text(10);
  run.submitter = row.text(11);
  const std::int64_t status = row.integer(4);
  if (row.text(9) != checksum_of(run) || status < 0 ||
      status > static_cast<std::int64_t>(RunStatus::kStopped))
    return damaged("the row of run " + std::to_string(run.number.value()));
  return run;
}

Result<void> SqliteStore::write(const RunRecord& run) const {
  FEDGE_TRY(update, database_->prepare("UPDATE runs SET status = ?2, reason = ?3, started = ?4, ended = ?5, "
                                       "checksum = ?6 WHERE number = ?1"));
  return update.bind(1, run.number.value())
      .bind(2, static_cast<std::int64_t>(run.status))
      .bind(3, run.reason)
      .bind(4, run.started)
      .bind(5, run.ended)
      .bind_bytes(6, checksum_of(run))
      .run();
}

Result<void> SqliteStore::check_room(const std::string& project) const {
  FEDGE_TRY(count,
            database_->prepare("SELECT count(*), coalesce(sum(project = ?), 0) FROM runs WHERE ended = 0"));
  FEDGE_TRY(found, count.bind(1, project).step());
  const std::int64_t all = found ? count.integer(0) : 0;
  const std::int64_t own = found ? count.integer(1) : 0;
  const bool crowded = project != kDefaultProject && own >= static_cast<std::int64_t>(kMaxOpenRunsOfProject);
  if (!crowded && all < static_cast<std::int64_t>(kMaxOpenRuns)) return {};
  if (!crowded && own < all) return Error{ErrorCode::kResource, "the coordinator can hold no more open runs"};
  return Error{ErrorCode::kResource,
               "there are " + std::to_string(own) +
                   " runs that have not ended, which is the maximum; stop one of them first"};
}

Result<RunNumber> SqliteStore::submit(const RunRecord& given) {
  RunRecord run = given;
  run.status = RunStatus::kPending;
  FEDGE_TRY_VOID(database_->check_in_place());
  FEDGE_TRY(transaction, Transaction::begin(*database_));
  FEDGE_TRY_VOID(check_room(run.project));
  FEDGE_TRY(removed, database_->prepare("SELECT number FROM removed_runs WHERE id = ?"));
  FEDGE_TRY(was, removed.bind(1, static_cast<std::int64_t>(run.id.value())).step());
  if (was)
    return Error{ErrorCode::kStale, "run " + std::to_string(removed.integer(0)) +
                                        ", which was submitted with the same key, has been removed"};
  FEDGE_TRY(same, find(run.id));
  if (same) return Error{ErrorCode::kStale, "run " + std::to_string(same->number.value()) + " has this id"};
  FEDGE_TRY(insert, database_->prepare("INSERT INTO runs (id, name, document, status, reason, submitted, "
                                       "started, ended, checksum, project, submitter) VALUES "
                                       "(?, ?, ?, ?, '', ?, 0, 0, x'', ?, ?)"));
  FEDGE_TRY_VOID(insert.bind(1, static_cast<std::int64_t>(run.id.value()))
                     .bind(2, run.name)
                     .bind(3, run.document)
                     .bind(4, static_cast<std::int64_t>(run.status))
                     .bind(5, run.submitted)
                     .bind(6, run.project)
                     .bind(7, run.submitter)
                     .run());
  run.number = RunNumber(database_->last_row());
  run.reason.clear();
  run.started = run.ended = 0;
  FEDGE_TRY_VOID(write(run));
  FEDGE_TRY_VOID(transaction.commit());
  return run.number;
}

constexpr const char* kSelectRuns =
    "SELECT number, id, name, document, status, reason, submitted, started, ended, checksum, project, "
    "submitter FROM runs ";

Result<std::vector<RunRecord>> SqliteStore::list(const char* which) const {
  FEDGE_TRY(select, database_->prepare((std::string(kSelectRuns) + which + "ORDER BY number").c_str()));
  std::vector<RunRecord> all;
  for (;;) {
    FEDGE_TRY(more, select.step());
    if (!more) return all;
    FEDGE_TRY(run, read(select));
    all.push_back(std::move(run));
  }
}

Result<std::optional<RunRecord>> SqliteStore::find(RunId id) {
  FEDGE_TRY(select, database_->prepare((std::string(kSelectRuns) + "WHERE id = ?").c_str()));
  select.bind(1, static_cast<std::int64_t>(id.value()));
  FEDGE_TRY(found, select.step());
  if (!found) return std::optional<RunRecord>();
  FEDGE_TRY(record, read(select));
  return std::optional(std::move(record));
}

Result<RunRecord> SqliteStore::find(RunNumber number) const {
  FEDGE_TRY(select, database_->prepare((std::string(kSelectRuns) + "WHERE number = ?").c_str()));
  select.bind(1, number.value());
  FEDGE_TRY(found, select.step());
  if (!found)
    return Error{ErrorCode::kNotFound,
                 "there is no run " + std::to_string(number.value()) + " in " + path_.string()};
  return read(select);
}

Result<bool> SqliteStore::change(RunNumber number,
                                 const std::function<Result<bool>(RunRecord&)>& edit) const {
  FEDGE_TRY_VOID(database_->check_in_place());
  FEDGE_TRY(transaction, Transaction::begin(*database_));
  FEDGE_TRY(record, find(number));
  FEDGE_TRY(wanted, edit(record));
  if (!wanted) return false;
  FEDGE_TRY_VOID(write(record));
  FEDGE_TRY_VOID(transaction.commit());
  return true;
}

Result<void> SqliteStore::ask(RunNumber number, RunStatus wanted, const std::string& reason,
                              UnixSeconds now) {
  FEDGE_TRY(done, change(number, [&](RunRecord& record) -> Result<bool> {
              FEDGE_TRY(asked, transition(record, wanted, reason, now));
              record = std::move(asked);
              return true;
            }));
  (void)done;
  return {};
}

Result<bool> SqliteStore::claim(RunNumber number, UnixSeconds now) {
  return change(number, [&](RunRecord& record) -> Result<bool> {
    if (record.status != RunStatus::kPending && record.status != RunStatus::kRunning) return false;
    record.status = RunStatus::kRunning;
    record.reason.clear();
    if (record.started == 0) record.started = now;
    return true;
  });
}

Result<void> SqliteStore::explain(RunNumber number, const std::string& reason) {
  FEDGE_TRY(done, change(number, [&](RunRecord& record) -> Result<bool> {
              if (record.status != RunStatus::kRunning || record.reason == reason) return false;
              record.reason = reason;
              return true;
            }));
  (void)done;
  return {};
}

Result<void> SqliteStore::set_status(RunNumber number, RunStatus status, const std::string& reason,
                                     UnixSeconds now) {
  FEDGE_TRY(done, change(number, [&](RunRecord& record) -> Result<bool> {
              record.status = status;
              record.reason = reason;
              if (has_ended(status)) record.ended = now;
              return true;
            }));
  (void)done;
  return {};
}

Result<void> SqliteStore::remove(RunNumber number) {
  FEDGE_TRY_VOID(database_->check_in_place());
  FEDGE_TRY(transaction, Transaction::begin(*database_));
  FEDGE_TRY(record, find(number));
  if (!record.is_over())
    return Error{ErrorCode::kRefused, "run " + std::to_string(number.value()) + " is " +
                                          name_of(record.status) + "; stop it first"};
  FEDGE_TRY(tombstone, database_->prepare("INSERT OR REPLACE INTO removed_runs VALUES (?, ?)"));
  FEDGE_TRY_VOID(
      tombstone.bind(1, static_cast<std::int64_t>(record.id.value())).bind(2, number.value()).run());
  for (const char* table :
       {"journal WHERE run", "checkpoints WHERE run", "rounds WHERE run", "runs WHERE number"}) {
    FEDGE_TRY(removal, database_->prepare((std::string("DELETE FROM ") + table + " = ?").c_str()));
    FEDGE_TRY_VOID(removal.bind(1, number.value()).run());
  }
  FEDGE_TRY_VOID(transaction.commit());
  heads_.erase(number);
  return {};
}

Result<std::uint64_t> SqliteStore::foreign_changes() {
  FEDGE_TRY_VOID(database_->check_in_place());
  FEDGE_TRY(version, database_->number("PRAGMA data_version"));
  return static_cast<std::uint64_t>(version);
}

Result<std::unique_ptr<RunStore>> open_sqlite_store(const std::filesystem::path& path) {
  FEDGE_TRY(database, Database::open(path));
  auto store = std::make_unique<SqliteStore>(path, std::move(database));
  FEDGE_TRY_VOID(store->prepare());
  return std::unique_ptr<RunStore>(std::move(store));
}

}  // namespace fedge::server
