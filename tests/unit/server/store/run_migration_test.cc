// runs.db of earlier versions.
#include <doctest/doctest.h>
#include <sqlite3.h>

#include <filesystem>
#include <string>
#include <vector>

#include "server/store/sqlite_store.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

void execute(const std::filesystem::path& file, const std::string& sql) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
  char* error = nullptr;
  const int done = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error);
  CHECK_MESSAGE(done == SQLITE_OK, sql << ": " << (error == nullptr ? "" : error));
  sqlite3_free(error);
  sqlite3_close(database);
}

std::unique_ptr<RunStore> opened(const std::filesystem::path& file) {
  auto store = open_sqlite_store(file);
  REQUIRE_MESSAGE(store, store.error().message);
  return std::move(*store);
}

// The tables as version 1 created them, with the rows of the present ones.
constexpr const char* kVersionOne = R"(
  CREATE TABLE old_runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL, name TEXT NOT NULL, document TEXT NOT NULL,
    status INTEGER NOT NULL, reason TEXT NOT NULL, submitted INTEGER NOT NULL, started INTEGER NOT NULL,
    ended INTEGER NOT NULL, checksum BLOB NOT NULL);
  INSERT INTO old_runs SELECT number, id, name, document, status, reason, submitted, started, ended, checksum FROM runs;
  DROP TABLE runs;
  DROP TABLE removed_runs;
  ALTER TABLE old_runs RENAME TO runs;
  PRAGMA user_version = 1;)";

}  // namespace

TEST_CASE("run migration: a store of version 1 keeps its runs, journals and rounds, and takes new runs") {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "runs.db";
  const RunRecord first = new_run("first", "[run]\nname = \"first\"\n");
  const RunRecord second = new_run("second", "[run]\nname = \"second\"\n");
  {
    const auto store = opened(file);
    REQUIRE(store->submit(first));
    REQUIRE(store->submit(second));
    std::vector<Batch> batches(1);
    batches[0].run = RunNumber(1);
    batches[0].entries = {{1, Time(Duration(10)), "x"}, {2, Time(Duration(20)), "y"}};
    batches[0].checkpoint = Checkpoint{1, "state", "{\"round\":1}"};
    REQUIRE(store->append(batches));
    REQUIRE(store->set_status(RunNumber(1), RunStatus::kFinished, "done", 2000));
  }
  execute(file, kVersionOne);
  const auto store = opened(file);
  const auto runs = store->runs();
  REQUIRE_MESSAGE(runs, runs.error().message);
  REQUIRE(runs->size() == 2);
  CHECK(runs->front().id == first.id);
  CHECK(runs->front().document == first.document);
  CHECK(runs->front().reason == "done");
  CHECK(runs->front().project == kDefaultProject);
  CHECK(runs->front().submitter.empty());
  std::string journal;
  REQUIRE(store->read_journal(RunNumber(1), [&](const JournalEntry& entry) -> Result<void> {
    journal += entry.input;
    return {};
  }));
  CHECK(journal == "xy");
  const auto checkpoint = store->checkpoint(RunNumber(1));
  REQUIRE(checkpoint);
  REQUIRE(checkpoint->has_value());
  CHECK((*checkpoint)->state == "state");
  CHECK(*store->highest() == RunNumber(2));
  CHECK((*store->find(second.id))->number == RunNumber(2));
  RunRecord third = new_run("third", "[run]\nname = \"third\"\n");
  third.project = "cardiology";
  CHECK(*store->submit(third) == RunNumber(3));
  CHECK(store->run(RunNumber(3))->project == "cardiology");
}

TEST_CASE("run migration: a store of version 2 keeps its runs, and can remove them") {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "runs.db";
  RunRecord first = new_run("first", "[run]\nname = \"first\"\n");
  first.project = "cardiology";
  {
    const auto store = opened(file);
    REQUIRE(store->submit(first));
    REQUIRE(store->set_status(RunNumber(1), RunStatus::kStopped, "", 2000));
  }
  execute(file, "DROP TABLE removed_runs; PRAGMA user_version = 2");
  const auto store = opened(file);
  CHECK(store->run(RunNumber(1))->project == "cardiology");
  REQUIRE(store->remove(RunNumber(1)));
  CHECK(store->submit(first).error().code == ErrorCode::kStale);
}

}  // namespace fedge::server
