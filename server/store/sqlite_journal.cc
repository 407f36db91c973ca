// SqliteStore, part 2: journals, checkpoints and the metrics of rounds.
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "server/store/detail/row_checksums.h"
#include "server/store/detail/sqlite_run_store.h"

namespace fedge::server {
namespace {

std::string of_run(RunNumber run) { return " of run " + std::to_string(run.value()); }

}  // namespace

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
  if (!found) {
    // A damaged table may hide its row.
    FEDGE_TRY(closed, rounds(run));
    if (closed > 0) return damaged("the checkpoint" + of_run(run));
    return std::optional<Checkpoint>();
  }
  Checkpoint result{.rounds = static_cast<std::uint64_t>(select.integer(0)), .state = select.text(1)};
  if (select.text(2) != checksum_of(run, select.integer(0), result.state))
    return damaged("the checkpoint" + of_run(run));
  FEDGE_TRY(count, database_->prepare("SELECT count(*) FROM rounds WHERE run = ?"));
  FEDGE_TRY(counted, count.bind(1, run.value()).step());
  if (!counted || static_cast<std::uint64_t>(count.integer(0)) != result.rounds || result.rounds == 0)
    return damaged("the list of rounds" + of_run(run));
  FEDGE_TRY(lines, metrics(run, result.rounds - 1, 1));
  if (lines.empty()) return damaged("the list of rounds" + of_run(run));
  result.metrics = std::move(lines.back());
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

}  // namespace fedge::server
