// SqliteStore: a RunStore in one SQLite file. Private to store/: open_sqlite_store() makes one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/store/detail/database.h"
#include "server/store/run_store.h"

namespace fedge::server {

class SqliteStore final : public RunStore {
 public:
  SqliteStore(std::filesystem::path path, std::unique_ptr<Database> database)
      : path_(std::move(path)), database_(std::move(database)) {}

  Result<void> prepare();

  Result<RunNumber> submit(const RunRecord& run) override;
  Result<std::vector<RunRecord>> runs() override { return list(""); }
  Result<std::vector<RunRecord>> open_runs() override { return list("WHERE ended = 0 "); }
  Result<RunNumber> highest() override {
    // Also counts runs that were removed.
    FEDGE_TRY(last,
              database_->number("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'runs'"));
    return RunNumber(last);
  }
  Result<RunRecord> run(RunNumber number) override { return find(number); }
  Result<std::optional<RunRecord>> find(RunId id) override;
  Result<void> ask(RunNumber number, RunStatus wanted, const std::string& reason, UnixSeconds now) override;
  Result<bool> claim(RunNumber number, UnixSeconds now) override;
  Result<void> explain(RunNumber number, const std::string& reason) override;
  Result<void> set_status(RunNumber number, RunStatus status, const std::string& reason,
                          UnixSeconds now) override;
  Result<void> remove(RunNumber number) override;
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

}  // namespace fedge::server
