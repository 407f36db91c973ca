// Damages a file between a coordinator's end and its next start. The coordinator either computes the same
// models or names the damaged file and ends. It never crashes and never computes other models.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/faults/whole_run.h"

using namespace fedge;
using test::contains;
using test::Outcome;
using test::Setting;
using test::WholeRun;

namespace {

const Setting kCorruptionSetting{"scaffold", "[strategy]\nkind = \"scaffold\"\n", 2, 3};

std::string contents(const std::filesystem::path& path) {
  const auto text = read_file(path, 64 << 20);
  REQUIRE_MESSAGE(text, text.error().message);
  return *text;
}

// Rewrites the file in place: a new file would have another header, owner and time.
void rewrite(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

void flip(const std::filesystem::path& path, std::size_t at) {
  std::string text = contents(path);
  REQUIRE(at < text.size());
  text[at] = static_cast<char>(text[at] ^ 0x10);
  rewrite(path, text);
}

void halve(const std::filesystem::path& path) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> all;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) all.push_back(entry.path());
  std::ranges::sort(all);
  return all;
}

// Kills the coordinator in the second round, when only client 0's update is acknowledged.
void begin_and_die(WholeRun& whole) {
  whole.begin_well();
  REQUIRE(whole.clients[1]->wait_for("update.accepted round=1"));
  whole.clients[1]->stop();
  REQUIRE(whole.clients[0]->wait_for("update.accepted round=2"));
  whole.server->kill();
  whole.kill_clients();
}

// Expects the next start to end with a message that contains `name`.
void check_refused(WholeRun& whole, const std::string& name) {
  whole.start();
  const int code = whole.server->ends_within(20'000) ? whole.server->wait() : -1;
  CHECK_MESSAGE(code == 1, whole.server->log());
  CHECK_MESSAGE(contains(whole.server->log(), name), whole.server->log());
}

}  // namespace

TEST_CASE("corruption: an acknowledged update that the disk has lost is asked for again, N1, row 9") {
  const std::string expected = test::undisturbed(kCorruptionSetting);
  for (const bool cut : {false, true}) {
    CAPTURE(cut);
    WholeRun whole(kCorruptionSetting);
    begin_and_die(whole);
    for (const auto& file : files_in(whole.data() / "runs" / "1" / "chunks" / "updates"))
      cut ? halve(file) : flip(file, 4096 + 100);
    REQUIRE(whole.go_on());
    whole.start_clients();
    whole.check(expected);
    CHECK_MESSAGE(contains(whole.server_log(), "update.lost client=0 round=2"), whole.server_log());
  }
}

TEST_CASE("corruption: without its model a run is not gone on with, and what to do is said, N2 R3, row 9") {
  for (const bool cut : {false, true}) {
    CAPTURE(cut);
    WholeRun whole(kCorruptionSetting);
    begin_and_die(whole);
    for (const auto& file : files_in(whole.data() / "runs" / "1" / "chunks" / "models"))
      cut ? halve(file) : flip(file, 4096 + 100);
    check_refused(whole, "restore the data directory from a backup");
    CHECK_MESSAGE(contains(whole.server->log(), "object"), whole.server->log());
    CHECK(contains(whole.server->log(), "chunks/models"));
  }
}

TEST_CASE("corruption: whatever byte of runs.db is flipped, the run ends alike or the file is named, row 9") {
  const std::string expected = test::undisturbed(kCorruptionSetting);
  WholeRun whole(kCorruptionSetting);
  begin_and_die(whole);
  // Moves the write-ahead log's content into the database file.
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(((whole.data() / "runs.db").c_str()), &handle) == 0);
  REQUIRE(sqlite3_exec(handle, "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr) == 0);
  sqlite3_close(handle);
  const auto file = whole.data() / "runs.db";
  const std::string good = contents(file);
  const std::size_t page = 4096;
  std::size_t refused = 0;
  for (std::size_t at = 0; at < good.size(); at += test::sweep_all() ? 97 : page) {
    for (const std::size_t place : {at + 2, at + page - 200}) {
      if (place >= good.size()) continue;
      CAPTURE(place);
      rewrite(file, good);
      flip(file, place);
      whole.start();
      if (whole.server->wait_for("coordinator.listening")) {
        whole.server->kill();  // saves nothing; a test below compares the models
        continue;
      }
      ++refused;
      CHECK_MESSAGE(whole.server->wait() == 1, whole.server->log());
      const bool named =
          contains(whole.server->log(), "runs.db") || contains(whole.server->log(), "journal") ||
          contains(whole.server->log(), "checkpoint") || contains(whole.server->log(), "run 1");
      CHECK_MESSAGE(named, whole.server->log());
    }
  }
  MESSAGE(refused << " damaged databases refused");
  CHECK(refused >= 4);
  rewrite(file, good.substr(0, good.size() / 2));
  check_refused(whole, "runs.db");
  rewrite(file, good);
  for (const char* beside : {"runs.db-wal", "runs.db-shm"}) std::filesystem::remove(whole.data() / beside);
  REQUIRE(whole.go_on());
  whole.start_clients();
  whole.check(expected);
}

TEST_CASE("corruption: a damaged policy, enrolment book or audit log is refused by its name, row 9") {
  WholeRun whole(kCorruptionSetting);
  begin_and_die(whole);
  for (const std::string name : {"runs/1/policy.toml", "audit.log"}) {
    CAPTURE(name);
    const auto file = whole.data() / name;
    const std::string good = contents(file);
    const std::size_t last_line = good.rfind('\n', good.size() - 2) + 1;
    flip(file, name == "audit.log" ? last_line + 10 : good.size() - 3);
    check_refused(whole, file.string());
    rewrite(file, good);
  }
  const auto book = whole.data() / "enrolment.db";
  const std::string good = contents(book);
  flip(book, 0);
  const Outcome listed = test::run("fedge token ls --data-dir " + whole.data().string());
  CHECK(listed.code == 1);
  CHECK_MESSAGE(contains(listed.output, book.string()), listed.output);
  check_refused(whole, book.string());
  rewrite(book, good);
}
