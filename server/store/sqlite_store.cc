#include "server/store/sqlite_store.h"

#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "server/store/detail/database.h"
#include "server/store/detail/row_checksums.h"
#include "server/store/detail/run_schema.h"

namespace fedge::server {
namespace {

std::string of_run(RunNumber run) { return " of run " + std::to_string(run.value()); }

class SqliteStore final : public RunStore {
 public:
  SqliteStore(std::filesystem::path path, std::unique_ptr<Database> database)
      : path_(std::move(path)), database_(std::move(database)) {}

  Result<void> prepare();

  Result<RunNumber> submit(const RunRecord& run) override;
  Result<std::vector<RunRecord>> runs() override { return list(""); }
  Result<std::vector<RunRecord>> open_runs() override { return list("WHERE ended = 0 "); }
  Result<RunNumber> highest() override {
    FEDGE_TRY(last, database_->number("SELECT coalesce(max(number), 0) FROM runs"));
    return RunNumber(last);
  }
  Result<RunRecord> run(RunNumber number) override { return find(number); }
  Result<std::optional<RunRecord>> find(RunId id) override;
  Result<void> ask(RunNumber number, RunStatus wanted, const std::string& reason, UnixSeconds now) override;
  Result<bool> claim(RunNumber number, UnixSeconds now) override;
  Result<void> explain(RunNumber number, const std::string& reason) override;
  Result<void> set_status(RunNumber number, RunStatus status, const std::string& reason,
                          UnixSeconds now) override;
  Result<void> append(std::span<const Batch> batches) override;
  Result<void> read_journal(RunNumber run,
                            const std::function<Result<void>(const JournalEntry&)>& visit) override;
  Result<std::optional<Checkpoint>> checkpoint(RunNumber run) override;
  Result<std::vector<std::string>> metrics(RunNumber run) override { return metrics(run, 0, INT64_MAX); }
  Result<std::vector<std::string>> metrics(RunNumber run, std::uint64_t after, std::uint64_t most) override;
  Result<std::uint64_t> rounds(RunNumber run) override;
  Result<std::uint64_t> foreign_changes() override;

 private:
  struct Head {
    std::uint64_t sequence = 0;
    std::string chain;
  };
  Error damaged(const std::string& what) const {
    return {ErrorCode::kCorrupt, path_.string() + ": " + what +
                                     " does not match its checksum; the disk or another program has changed "
                                     "it. Restore the data directory from a backup"};
  }
  Result<void> migrate(std::int64_t from) const;
  // kResource: there are too many open runs already.
  Result<void> check_room(const std::string& project) const;
  Result<RunRecord> read(const Statement& row) const;
  Result<RunRecord> find(RunNumber number) const;
  Result<std::vector<RunRecord>> list(const char* which) const;
  // Edits a run's row in a transaction; `edit` returns whether to write it.
  Result<bool> change(RunNumber number, const std::function<Result<bool>(RunRecord&)>& edit) const;
  Result<void> write(const RunRecord& run) const;
  Result<Head> head(RunNumber run) const;
  // Appends entries and returns the journal's new head.
  Result<Head> add(RunNumber run, Head head, std::span<const JournalEntry> entries) const;
  Result<void> keep(RunNumber run, const Checkpoint& checkpoint) const;

  std::filesystem::path path_;
  std::unique_ptr<Database> database_;
  std::map<RunNumber, Head> heads_;  // of the journals that this process appended to
};

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
    return damaged("the row" + of_run(run.number));
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

Result<SqliteStore::Head> SqliteStore::head(RunNumber run) const {
  if (const auto known = heads_.find(run); known != heads_.end()) return known->second;
  FEDGE_TRY(select, database_->prepare(
                        "SELECT sequence, chain FROM journal WHERE run = ? ORDER BY sequence DESC LIMIT 1"));
  select.bind(1, run.value());
  FEDGE_TRY(found, select.step());
  if (!found) return Head{};
  return Head{static_cast<std::uint64_t>(select.integer(0)), select.text(1)};
}

Result<SqliteStore::Head> SqliteStore::add(RunNumber run, Head head,
                                           std::span<const JournalEntry> entries) const {
  FEDGE_TRY(insert, database_->prepare("INSERT INTO journal VALUES (?, ?, ?, ?, ?)"));
  for (const JournalEntry& entry : entries) {
    if (entry.sequence != head.sequence + 1)
      return Error{ErrorCode::kInvalid, "entry " + std::to_string(entry.sequence) + of_run(run) +
                                            " does not follow entry " + std::to_string(head.sequence)};
    head = {entry.sequence, chain(head.chain, run, entry)};
    FEDGE_TRY_VOID(insert.bind(1, run.value())
                       .bind(2, static_cast<std::int64_t>(entry.sequence))
                       .bind(3, std::int64_t{entry.time.time_since_epoch().count()})
                       .bind_bytes(4, entry.input)
                       .bind_bytes(5, head.chain)
                       .run());
  }
  return head;
}

Result<void> SqliteStore::keep(RunNumber run, const Checkpoint& checkpoint) const {
  const auto rounds = static_cast<std::int64_t>(checkpoint.rounds);
  FEDGE_TRY(replace, database_->prepare("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)"));
  FEDGE_TRY_VOID(replace.bind(1, run.value())
                     .bind(2, rounds)
                     .bind_bytes(3, checkpoint.state)
                     .bind_bytes(4, checksum_of(run, rounds, checkpoint.state))
                     .run());
  FEDGE_TRY(insert, database_->prepare("INSERT INTO rounds VALUES (?, ?, ?, ?)"));
  return insert.bind(1, run.value())
      .bind(2, rounds)
      .bind(3, checkpoint.metrics)
      .bind_bytes(4, checksum_of(run, rounds, checkpoint.metrics))
      .run();
}

Result<void> SqliteStore::append(std::span<const Batch> batches) {
  FEDGE_TRY_VOID(database_->check_in_place());
  FEDGE_TRY(transaction, Transaction::begin(*database_));
  std::map<RunNumber, Head> heads;
  for (const Batch& batch : batches) {
    if (!heads.contains(batch.run)) {
      FEDGE_TRY(known, head(batch.run));
      heads[batch.run] = std::move(known);
    }
    FEDGE_TRY(now, add(batch.run, heads[batch.run], batch.entries));
    heads[batch.run] = std::move(now);
    if (batch.checkpoint) FEDGE_TRY_VOID(keep(batch.run, *batch.checkpoint));
  }
  FEDGE_TRY_VOID(transaction.commit());
  for (auto& [run, now] : heads) heads_[run] = std::move(now);
  return database_->check_in_place();  // if not, the batch must not be acknowledged
}

Result<void> SqliteStore::read_journal(RunNumber run,
                                       const std::function<Result<void>(const JournalEntry&)>& visit) {
  FEDGE_TRY(select, database_->prepare("SELECT sequence, time, input, chain FROM journal "
                                       "WHERE run = ?1 AND sequence > ?2 ORDER BY sequence LIMIT 1"));
  Head before;
  auto after = std::numeric_limits<std::int64_t>::min();  // also finds entries with an altered number
  for (;;) {
    select.bind(1, run.value()).bind(2, after);
    FEDGE_TRY(more, select.step());
    if (!more) return {};
    const JournalEntry entry{.sequence = static_cast<std::uint64_t>(select.integer(0)),
                             .time = Time(Duration(select.integer(1))),
                             .input = select.text(2)};
    Head now{entry.sequence, chain(before.chain, run, entry)};
    if (entry.sequence != before.sequence + 1 || now.chain != select.text(3))
      return damaged("entry " + std::to_string(before.sequence + 1) + " of the journal" + of_run(run));
    before = std::move(now);
    after = select.integer(0);
    // Reset before `visit`, which may write: a statement that is still reading keeps its snapshot, and
    // SQLite refuses to write from a snapshot once another connection has written.
    select.reset();
    FEDGE_TRY_VOID(visit(entry));
  }
}

Result<std::optional<Checkpoint>> SqliteStore::checkpoint(RunNumber run) {
  FEDGE_TRY(select, database_->prepare("SELECT rounds, state, checksum FROM checkpoints WHERE run = ?"));
  select.bind(1, run.value());
  FEDGE_TRY(found, select.step());
  if (!found) return std::optional<Checkpoint>();
  Checkpoint result{.rounds = static_cast<std::uint64_t>(select.integer(0)), .state = select.text(1)};
  if (select.text(2) != checksum_of(run, select.integer(0), result.state))
    return damaged("the checkpoint" + of_run(run));
  FEDGE_TRY(lines, metrics(run));
  if (lines.size() != result.rounds) return damaged("the list of rounds" + of_run(run));
  result.metrics = lines.back();
  return std::optional(std::move(result));
}

Result<std::uint64_t> SqliteStore::rounds(RunNumber run) {
  FEDGE_TRY(select, database_->prepare("SELECT coalesce(max(round), 0) FROM rounds WHERE run = ?"));
  FEDGE_TRY(found, select.bind(1, run.value()).step());
  return found ? static_cast<std::uint64_t>(select.integer(0)) : 0;
}

Result<std::vector<std::string>> SqliteStore::metrics(RunNumber run, std::uint64_t after,
                                                      std::uint64_t most) {
  FEDGE_TRY(select, database_->prepare("SELECT round, metrics, checksum FROM rounds WHERE run = ?1 AND "
                                       "round > ?2 ORDER BY round LIMIT ?3"));
  const auto first = static_cast<std::int64_t>(after);
  select.bind(1, run.value()).bind(2, first).bind(3, static_cast<std::int64_t>(most));
  std::vector<std::string> lines;
  for (;;) {
    FEDGE_TRY(more, select.step());
    if (!more) return lines;
    const auto round = first + static_cast<std::int64_t>(lines.size()) + 1;
    std::string line = select.text(1);
    if (select.integer(0) != round || select.text(2) != checksum_of(run, round, line))
      return damaged("round " + std::to_string(round) + of_run(run));
    lines.push_back(std::move(line));
  }
}

Result<std::uint64_t> SqliteStore::foreign_changes() {
  FEDGE_TRY_VOID(database_->check_in_place());
  FEDGE_TRY(version, database_->number("PRAGMA data_version"));
  return static_cast<std::uint64_t>(version);
}

}  // namespace

Result<std::unique_ptr<RunStore>> open_sqlite_store(const std::filesystem::path& path) {
  FEDGE_TRY(database, Database::open(path));
  auto store = std::make_unique<SqliteStore>(path, std::move(database));
  FEDGE_TRY_VOID(store->prepare());
  return std::unique_ptr<RunStore>(std::move(store));
}

}  // namespace fedge::server
