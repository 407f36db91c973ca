// Tests every implementation of RunStore, the coordinator's memory, with the same checks.
#include "server/store/run_store.h"

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "server/audit_log.h"
#include "server/store/run_evidence.h"
#include "server/store/sqlite_store.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using namespace fedge::server;

namespace {

using Reopen = std::function<std::unique_ptr<RunStore>()>;

std::unique_ptr<RunStore> open(const std::filesystem::path& path) {
  auto store = open_sqlite_store(path);
  REQUIRE_MESSAGE(store, store.error().message);
  return std::move(*store);
}

// Runs the suite for each implementation; `claims` gets a function that reopens the store.
void with_each_store(const std::function<void(const Reopen&)>& claims) {
  const test::TemporaryDirectory directory;
  SUBCASE("sqlite") {
    claims([&] { return open(directory.path() / "runs.db"); });
  }
}

RunRecord some_run(const std::string& name) {
  return {.number = RunNumber(),
          .id = RunId(0x8000'0000'0000'0001 + name.size()),
          .name = name,
          .document = "[run]\nname = \"" + name + "\"\n",
          .submitted = 1000};
}

// A run with an id of its own.
RunRecord another_run(const std::string& name) {
  static std::uint64_t runs = 0;
  RunRecord run = some_run(name);
  run.id = RunId(++runs);
  return run;
}

JournalEntry entry(std::uint64_t sequence, const std::string& input) {
  return {sequence, Time(Duration(10 * sequence)), input};
}

std::vector<JournalEntry> journal(RunStore& store, RunNumber run) {
  std::vector<JournalEntry> entries;
  const auto read = store.read_journal(run, [&](const JournalEntry& each) -> Result<void> {
    entries.push_back(each);
    return {};
  });
  REQUIRE_MESSAGE(read, read.error().message);
  return entries;
}

// Writes a store with two entries and a checkpoint of a run, closed and complete in one file.
void write_store(const std::filesystem::path& path) {
  const auto store = open(path);
  const auto run = store->submit(some_run("first"));
  REQUIRE(run);
  const Batch batch{.run = *run,
                    .entries = {entry(1, std::string(200, 'a')), entry(2, std::string(3000, 'b'))},
                    .checkpoint = Checkpoint{1, std::string(500, 'c'), R"({"round":1})"}};
  REQUIRE(store->append({&batch, 1}));
}

// Returns everything that a store returns about run 1, or the first error.
Result<std::string> content(const std::filesystem::path& path) {
  FEDGE_TRY(store, open_sqlite_store(path));
  FEDGE_TRY(runs, store->runs());
  std::string all;
  for (const RunRecord& run : runs)
    all += run.name + run.document + name_of(run.status) + std::to_string(run.id.value());
  FEDGE_TRY_VOID(store->read_journal(RunNumber(1), [&](const JournalEntry& each) -> Result<void> {
    all += std::to_string(each.sequence) + std::to_string(each.time.time_since_epoch().count()) + each.input;
    return {};
  }));
  FEDGE_TRY(checkpoint, store->checkpoint(RunNumber(1)));
  if (checkpoint) all += std::to_string(checkpoint->rounds) + checkpoint->state + checkpoint->metrics;
  return all;
}

}  // namespace

TEST_CASE("run store: runs are numbered as they are submitted, and are there when it is opened again") {
  with_each_store([](const Reopen& reopen) {
    auto store = reopen();
    CHECK(store->submit(some_run("one"))->value() == 1);
    CHECK(store->submit(some_run("three"))->value() == 2);
    CHECK(*store->claim(RunNumber(1), 2000));
    REQUIRE(store->ask(RunNumber(1), RunStatus::kPaused, "for lunch", 2500));
    CHECK_FALSE(*store->claim(RunNumber(1), 2600));
    REQUIRE(store->ask(RunNumber(1), RunStatus::kPending, "", 2700));
    CHECK(*store->claim(RunNumber(1), 3000));
    REQUIRE(store->set_status(RunNumber(2), RunStatus::kStopped, "not wanted", 4000));
    store = reopen();
    const auto runs = store->runs();
    REQUIRE(runs);
    REQUIRE(runs->size() == 2);
    const RunRecord& first = (*runs)[0];
    CHECK(first.name == "one");
    CHECK(first.id == some_run("one").id);
    CHECK(first.document == some_run("one").document);
    CHECK(first.status == RunStatus::kRunning);
    CHECK(first.submitted == 1000);
    CHECK(first.started == 2000);
    CHECK(first.ended == 0);
    CHECK((*runs)[1].status == RunStatus::kStopped);
    CHECK((*runs)[1].reason == "not wanted");
    CHECK((*runs)[1].ended == 4000);
    CHECK(store->run(RunNumber(3)).error().code == ErrorCode::kNotFound);
    CHECK(store->submit(some_run("x"))->value() == 3);
  });
}

TEST_CASE("run store: what an operator asks of a run is done where its state allows it, and said where not") {
  struct Wish {
    RunStatus from;
    RunStatus wanted;
    const char* refusal;  // null: accepted
  };
  const auto set = [](RunStore& store, RunNumber run, RunStatus status) {
    if (status != RunStatus::kPending) CHECK(*store.claim(run, 10));
    if (status != RunStatus::kPending && status != RunStatus::kRunning)
      REQUIRE(store.set_status(run, status, "", 20));
  };
  using enum RunStatus;
  for (const Wish& wish :
       {Wish{kPending, kPaused, nullptr}, Wish{kRunning, kPaused, nullptr},
        Wish{kPaused, kPaused, "run 1 is paused already"},
        Wish{kFinished, kPaused, "run 1 is finished and can no longer be changed"},
        Wish{kPending, kPending, "run 1 is pending, not paused"}, Wish{kPaused, kPending, nullptr},
        Wish{kStopped, kPending, "run 1 is stopped, not paused"}, Wish{kPending, kStopped, nullptr},
        Wish{kRunning, kStopped, nullptr}, Wish{kPaused, kStopped, nullptr},
        Wish{kFailed, kStopped, "run 1 is failed and can no longer be changed"}})
    with_each_store([&](const Reopen& reopen) {
      const auto store = reopen();
      const RunNumber run = *store->submit(some_run("one"));
      set(*store, run, wish.from);
      const auto asked = store->ask(run, wish.wanted, "why", 30);
      const RunRecord now = *store->run(run);
      CHECK(asked.has_value() == (wish.refusal == nullptr));
      if (!asked) {
        CHECK(asked.error().code == ErrorCode::kRefused);
        CHECK(asked.error().message == wish.refusal);
        CHECK(now.status == wish.from);
      } else {
        CHECK(now.status == wish.wanted);
        CHECK(now.reason == "why");
      }
    });
}

TEST_CASE(
    "run store: why a run makes no progress is kept while it is running, and takes nobody's wish away") {
  with_each_store([&](const Reopen& reopen) {
    const auto store = reopen();
    const RunNumber run = *store->submit(some_run("one"));
    const auto reason = [&] { return store->run(run)->reason; };
    REQUIRE(store->explain(run, "early"));
    CHECK(reason().empty());
    CHECK(*store->claim(run, 10));
    REQUIRE(store->explain(run, "waiting for clients: 1 of 2"));
    CHECK(reason() == "waiting for clients: 1 of 2");
    REQUIRE(store->explain(run, ""));
    CHECK(reason().empty());
    REQUIRE(store->ask(run, RunStatus::kStopped, "seen enough", 20));
    REQUIRE(store->explain(run, "waiting for clients: 1 of 2"));
    CHECK(store->run(run)->status == RunStatus::kStopped);
    CHECK(reason() == "seen enough");
  });
}

TEST_CASE("run store: a run that is stopped is over once somebody has written what it has come to") {
  with_each_store([](const Reopen& reopen) {
    const auto store = reopen();
    const RunNumber begun = *store->submit(another_run("one"));
    const RunNumber fresh = *store->submit(another_run("two"));
    CHECK(*store->claim(begun, 10));
    for (const RunNumber run : {begun, fresh}) REQUIRE(store->ask(run, RunStatus::kStopped, "", 20));
    CHECK_FALSE(*store->claim(begun, 30));
    CHECK(store->run(fresh)->ended == 20);
    CHECK(store->run(begun)->ended == 0);
    REQUIRE(store->open_runs()->size() == 1);
    CHECK(store->open_runs()->front().number == begun);
    REQUIRE(store->set_status(begun, RunStatus::kStopped, "", 40));
    CHECK(store->open_runs()->empty());
    CHECK(store->runs()->size() == 2);
  });
}

TEST_CASE("A6, run store: no more runs wait than there may, and one that has ended makes room") {
  with_each_store([](const Reopen& reopen) {
    const auto store = reopen();
    for (std::size_t i = 0; i < kMaxOpenRuns; ++i) REQUIRE(store->submit(another_run("one")));
    const auto refused = store->submit(another_run("one"));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kResource);
    CHECK(refused.error().message.find("there are 256 runs that have not ended") != std::string::npos);
    REQUIRE(store->ask(RunNumber(17), RunStatus::kStopped, "", 20));
    CHECK(store->submit(another_run("one")));
  });
}

// Closing any file descriptor of the database would drop this process's locks. The next process that closes
// it would then discard the write-ahead log (sqlite.org/howtocorrupt.html, 2.2).
TEST_CASE("N1, sqlite store: connections of one process do not drop each other's locks") {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "runs.db";
  const auto one = open_sqlite_store(path);
  REQUIRE(one);
  const RunNumber run = *(*one)->submit(some_run("one"));
  REQUIRE(open_sqlite_store(path));
  const Batch before{.run = run, .entries = {entry(1, "x")}, .checkpoint = {}};
  REQUIRE((*one)->append({&before, 1}));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool opened = open_sqlite_store(path).has_value();
    ::_exit(opened ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(std::filesystem::exists(directory.path() / "runs.db-wal"));
  const Batch after{.run = run, .entries = {entry(2, "y")}, .checkpoint = {}};
  REQUIRE((*one)->append({&after, 1}));
  const auto other = open_sqlite_store(path);
  REQUIRE(other);
  CHECK(journal(**other, run).size() == 2);
}

TEST_CASE("run store: each run has a journal of its own, in order, with every byte and time") {
  with_each_store([](const Reopen& reopen) {
    auto store = reopen();
    const RunNumber one = *store->submit(another_run("one"));
    const RunNumber two = *store->submit(another_run("two"));
    const std::string bytes("\0\xff'; DROP TABLE runs; --\n", 25);
    const std::vector<Batch> batches = {
        {.run = one, .entries = {entry(1, bytes), entry(2, "")}, .checkpoint = {}},
        {.run = two, .entries = {entry(1, "other")}, .checkpoint = {}},
        {.run = one, .entries = {entry(3, "third")}, .checkpoint = {}}};
    REQUIRE(store->append(batches));
    store = reopen();
    const Batch more{.run = one, .entries = {entry(4, "fourth")}, .checkpoint = {}};
    REQUIRE(store->append({&more, 1}));
    const auto entries = journal(*store, one);
    REQUIRE(entries.size() == 4);
    CHECK(entries[0].input == bytes);
    CHECK(entries[1].input.empty());
    CHECK(entries[3].input == "fourth");
    for (std::uint64_t i = 0; i < 4; ++i) CHECK(entries[i].time == Time(Duration(10 * (i + 1))));
    CHECK(journal(*store, two).size() == 1);
    CHECK(journal(*store, RunNumber(9)).empty());
  });
}

TEST_CASE("run store: while a journal is read this process and others may write, N1") {
  with_each_store([](const Reopen& reopen) {
    const auto store = reopen();
    const auto other = reopen();
    const auto mine = store->submit(another_run("one"));
    const auto theirs = store->submit(another_run("two"));
    REQUIRE(mine);
    REQUIRE(theirs);
    const Batch two{.run = *mine, .entries = {entry(1, "a"), entry(2, "b")}, .checkpoint = {}};
    REQUIRE(store->append({&two, 1}));
    const auto read = store->read_journal(*mine, [&](const JournalEntry& each) -> Result<void> {
      const Batch another{.run = *theirs, .entries = {entry(each.sequence, "x")}, .checkpoint = {}};
      FEDGE_TRY_VOID(other->append({&another, 1}));
      const Batch round{.run = *mine, .entries = {}, .checkpoint = Checkpoint{each.sequence, "state", "{}"}};
      return store->append({&round, 1});
    });
    REQUIRE_MESSAGE(read, read.error().message);
    CHECK(store->metrics(*mine)->size() == 2);
    CHECK(journal(*store, *theirs).size() == 2);
  });
}

TEST_CASE("run store: an entry that leaves a gap is refused, and its batch with it") {
  with_each_store([](const Reopen& reopen) {
    const auto store = reopen();
    const RunNumber run = *store->submit(some_run("one"));
    const Batch gap{.run = run, .entries = {entry(1, "a"), entry(3, "c")}, .checkpoint = {}};
    CHECK(store->append({&gap, 1}).error().code == ErrorCode::kInvalid);
    CHECK(journal(*store, run).empty());
    const Batch twice{.run = run, .entries = {entry(1, "a"), entry(1, "a")}, .checkpoint = {}};
    CHECK_FALSE(store->append({&twice, 1}));
    const Batch right{.run = run, .entries = {entry(1, "a")}, .checkpoint = {}};
    REQUIRE(store->append({&right, 1}));
    CHECK(journal(*store, run).size() == 1);
  });
}

TEST_CASE("run store: a checkpoint takes the place of the last one, and the rounds' figures add up") {
  with_each_store([](const Reopen& reopen) {
    auto store = reopen();
    const RunNumber run = *store->submit(some_run("one"));
    CHECK_FALSE(store->checkpoint(run)->has_value());
    CHECK(store->metrics(run)->empty());
    for (std::uint64_t round = 1; round <= 3; ++round) {
      const std::string number = std::to_string(round);
      const Batch batch{.run = run,
                        .entries = {entry(round, "input")},
                        .checkpoint = Checkpoint{round, "state" + number, "round" + number}};
      REQUIRE(store->append({&batch, 1}));
    }
    store = reopen();
    const auto last = store->checkpoint(run);
    REQUIRE(last);
    REQUIRE(last->has_value());
    CHECK((*last)->rounds == 3);
    CHECK((*last)->state == "state3");
    CHECK((*last)->metrics == "round3");
    CHECK(*store->metrics(run) == std::vector<std::string>{"round1", "round2", "round3"});
  });
}

TEST_CASE("run store: what another process changes is noticed, what this one changes is not") {
  with_each_store([](const Reopen& reopen) {
    const auto mine = reopen();
    const auto other = reopen();
    const RunNumber run = *mine->submit(some_run("one"));
    const auto before = mine->foreign_changes();
    REQUIRE(mine->claim(run, 1));
    CHECK(*mine->foreign_changes() == *before);
    REQUIRE(other->ask(run, RunStatus::kStopped, "by hand", 2));
    CHECK(*mine->foreign_changes() != *before);
    CHECK(mine->run(run)->reason == "by hand");
  });
}

TEST_CASE("N2 row 9, sqlite store: a bit that the disk has changed is found and named, never believed") {
  const test::TemporaryDirectory directory;
  const auto original = directory.path() / "original.db";
  write_store(original);
  const auto truth = content(original);
  REQUIRE(truth);
  const auto size = std::filesystem::file_size(original);
  const auto damaged = directory.path() / "damaged.db";
  std::mt19937_64 random(20261121);
  int found = 0;
  for (int i = 0; i < 1500; ++i) {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(damaged.string() + suffix);
    std::filesystem::copy_file(original, damaged);
    const std::uint64_t bit = random() % (8 * size);
    std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(bit / 8));
    const char byte = static_cast<char>(file.get() ^ (1 << (bit % 8)));
    file.seekp(static_cast<std::streamoff>(bit / 8));
    file.put(byte);
    file.close();
    const auto read = content(damaged);
    // A flipped bit is harmless or gives an error that names the file.
    if (read) {
      REQUIRE_MESSAGE(*read == *truth, "bit " << bit);
    } else {
      ++found;
      REQUIRE_MESSAGE(read.error().message.find("damaged.db") != std::string::npos, read.error().message);
    }
  }
  CHECK(found > 100);
}

TEST_CASE("N1 row 8, sqlite store: a write-ahead log cut at any place leaves a prefix of what was appended") {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "runs.db";
  const auto cut = directory.path() / "cut.db";
  const auto store = open(path);
  const RunNumber run = *store->submit(some_run("one"));
  constexpr std::uint64_t kEntries = 6;
  for (std::uint64_t i = 1; i <= kEntries; ++i) {
    const Batch batch{
        .run = run, .entries = {entry(i, std::string(300, static_cast<char>('a' + i)))}, .checkpoint = {}};
    REQUIRE(store->append({&batch, 1}));
  }
  const auto log = path.string() + "-wal";
  const auto size = std::filesystem::file_size(log);
  std::size_t most = 0;
  for (std::uintmax_t length = 0; length <= size; length += 509) {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(cut.string() + suffix);
    std::filesystem::copy_file(path, cut);
    std::filesystem::copy_file(log, cut.string() + "-wal");
    std::filesystem::resize_file(cut.string() + "-wal", length);
    const auto opened = open_sqlite_store(cut);
    REQUIRE_MESSAGE(opened, opened.error().message);
    const auto entries = journal(**opened, run);
    CHECK(entries.size() >= most);
    most = std::max(most, entries.size());
    for (std::uint64_t i = 0; i < entries.size(); ++i)
      CHECK(entries[i].input == std::string(300, static_cast<char>('b' + i)));
  }
  CHECK(most >= kEntries - 1);
}

TEST_CASE("run store: a project cannot fill the queue for the others") {
  const test::TemporaryDirectory directory;
  const auto store = open(directory.path() / "runs.db");
  RunRecord run = another_run("one");
  run.project = "cardiology";
  for (std::size_t i = 0; i < kMaxOpenRunsOfProject; ++i) {
    run.id = another_run("one").id;
    REQUIRE(store->submit(run));
  }
  run.id = another_run("one").id;
  const auto full = store->submit(run);
  REQUIRE_FALSE(full);
  CHECK(full.error().message ==
        "there are 32 runs that have not ended, which is the maximum; stop one of them first");
  run.project = "oncology";
  CHECK(store->submit(run));
}

TEST_CASE("row 63, sqlite store: a newer version's database and a stranger's are refused and left alone") {
  const test::TemporaryDirectory directory;
  const auto ours = directory.path() / "ours.db";
  write_store(ours);
  const auto change = [](const std::filesystem::path& path, const char* sql) {
    sqlite3* handle = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &handle) == SQLITE_OK);
    REQUIRE(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(handle);
  };
  change(ours, "PRAGMA user_version = 99");
  const auto newer = open_sqlite_store(ours);
  CHECK(newer.error().code == ErrorCode::kUnsupported);
  CHECK(newer.error().message.find("99") != std::string::npos);
  const auto theirs = directory.path() / "theirs.db";
  change(theirs, "CREATE TABLE songs (title TEXT)");
  CHECK(open_sqlite_store(theirs).error().code == ErrorCode::kCorrupt);
  change(theirs, "INSERT INTO songs VALUES ('still here')");
  const auto text = directory.path() / "text.db";
  std::ofstream(text) << std::string(5000, 'x');
  CHECK(open_sqlite_store(text).error().code == ErrorCode::kCorrupt);
  CHECK(std::filesystem::file_size(text) == 5000);
}

TEST_CASE("row 63, sqlite store: the database of every version that was ever released can be read") {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "runs.db";
  std::filesystem::copy_file(std::filesystem::path(FEDGE_SOURCE_DIR) / "tests/unit/server/data/runs-v1.db",
                             path);
  std::filesystem::permissions(path,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const test::TemporaryDirectory fresh;
  write_store(fresh.path() / "runs.db");
  CHECK(*content(path) == *content(fresh.path() / "runs.db"));
}

TEST_CASE("A4 row 47, sqlite store: its files are the owner's alone") {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "runs.db";
  const auto store = open(path);
  REQUIRE(store->submit(some_run("one")));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    const auto mode = std::filesystem::status(path.string() + suffix).permissions();
    CHECK((mode & std::filesystem::perms(0077)) == std::filesystem::perms::none);
  }
}

TEST_CASE(
    "a store whose file was removed or replaced while it is open keeps nothing, and says what has become of "
    "it") {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "runs.db";
  write_store(path);
  const auto store = open(path);
  const Batch batch{.run = RunNumber(1), .entries = {entry(3, "c")}, .checkpoint = {}};
  std::filesystem::rename(path, path.string() + ".away");
  SUBCASE("removed") {}
  SUBCASE("replaced") { write_store(path); }
  const auto appended = store->append({&batch, 1});
  REQUIRE_FALSE(appended);
  CHECK(appended.error().code == ErrorCode::kUnavailable);
  CHECK_MESSAGE(appended.error().message.find(path.string() + " was re") != std::string::npos,
                appended.error().message);
  CHECK_FALSE(store->claim(RunNumber(1), 2000));
  CHECK_FALSE(store->submit(some_run("second")));
  CHECK_FALSE(store->foreign_changes());
}

TEST_CASE("runs that the audit log tells of and the database does not hold are missed, not forgotten") {
  const test::TemporaryDirectory directory;
  const AuditLog log(directory.path());
  CHECK(check_runs_kept(directory.path(), RunNumber(0)));  // a new data directory
  REQUIRE(log.append({"uid 1", "run.submitted", "run run 9", {{"run_id", "0"}}}));
  CHECK(check_runs_kept(directory.path(), RunNumber(0)).error().code == ErrorCode::kUnavailable);
  write_store(run_store_path(directory.path()));
  CHECK(check_runs_kept(directory.path(), RunNumber(1)));
  REQUIRE(log.append({"uid 1", "run.paused", "run run 9", {{"run", "2"}}}));
  CHECK(check_runs_kept(directory.path(), RunNumber(1)).error().message.find("records run 2") !=
        std::string::npos);
  CHECK(check_runs_kept(directory.path(), RunNumber(2)));
  REQUIRE(log.append({"uid 1", "coordinator.started", "run 3", {}}));
  CHECK_FALSE(check_runs_kept(directory.path(), RunNumber(2)));
  REQUIRE(log.append({"uid 1", "coordinator.started", "all runs", {}}));
  CHECK(check_runs_kept(directory.path(), RunNumber(3)));
}

TEST_CASE("run store: a removed run is gone with all that belongs to it, and its number is not used again") {
  with_each_store([](const Reopen& reopen) {
    auto store = reopen();
    for (const char* name : {"a", "b"}) REQUIRE(store->submit(another_run(name)));
    const RunRecord third = another_run("c");
    REQUIRE(store->submit(third));
    const RunNumber last(3);
    CHECK(store->remove(last).error().code == ErrorCode::kRefused);
    CHECK(store->remove(RunNumber(9)).error().code == ErrorCode::kNotFound);
    const std::vector<Batch> batches = {
        {.run = last, .entries = {entry(1, "x")}, .checkpoint = Checkpoint{1, "state", "{}"}}};
    REQUIRE(store->append(batches));
    REQUIRE(store->set_status(last, RunStatus::kFinished, "", 2000));
    REQUIRE(store->remove(last));
    CHECK(store->run(last).error().code == ErrorCode::kNotFound);
    CHECK(store->runs()->size() == 2);
    CHECK(journal(*store, last).empty());
    CHECK_FALSE(*store->checkpoint(last));
    CHECK(store->metrics(last)->empty());
    CHECK(*store->highest() == last);
    store = reopen();
    CHECK(*store->highest() == last);
    CHECK(*store->submit(another_run("d")) == RunNumber(4));
    // Nor is its id: a late repetition of the submission must not start the run again.
    CHECK(store->submit(third).error().code == ErrorCode::kStale);
    CHECK(store->run(RunNumber(2)));
  });
}
