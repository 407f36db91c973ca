// Backups of a data directory that changes meanwhile, and what a restored one does not allow any more.
#include "server/backup/backup.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/files.h"
#include "protocol/chunks/stored_files.h"
#include "server/audit_log.h"
#include "server/backup/backup_lock.h"
#include "server/backup/restore.h"
#include "server/data_directory.h"
#include "server/enrolment.h"
#include "server/store/sqlite_store.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

PublicKey numbered_key(std::uint32_t number) {
  PublicKey key;
  key.bytes.fill(7);
  for (std::size_t i = 0; i < 4; ++i) key.bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return key;
}

// A data directory as a coordinator leaves it.
struct Backed {
  test::TemporaryDirectory directory;
  std::filesystem::path data = directory.path() / "data";
  PublicKey key;

  Backed() {
    const auto made = open_coordinator_key(data);
    REQUIRE(made);
    key = made->public_key();
    REQUIRE(Enrolment(data).take_up(key));
    REQUIRE(open_sqlite_store(run_store_path(data)));
    REQUIRE(AuditLog(data).append({"uid 1", "coordinator.started", "all runs", {}}));
  }
  Result<BackupSummary> backup(const std::string& name) const {
    return make_backup({.data_directory = data, .out = directory.path() / name, .version = "0.1.0"});
  }
  Result<RestoreSummary> restore(const std::string& from, const std::string& to,
                                 bool nothing_since = false) const {
    return restore_backup({.backup = directory.path() / from,
                           .data_directory = directory.path() / to,
                           .version = "0.1.0",
                           .nothing_since = nothing_since,
                           .skipped_numbers = 50});
  }
};

std::shared_ptr<protocol::StoredObject> some_model(protocol::ChunkStore& store, char value) {
  protocol::Manifest shape{
      .coverage = Coverage::all(4 << 10), .payload_size = 16 << 10, .chunk_size = 16 << 10};
  const auto object = store.build(shape, [&](std::size_t, std::span<std::byte> out) -> Result<void> {
    std::ranges::fill(out, static_cast<std::byte>(value));
    return {};
  });
  REQUIRE(object);
  return *object;
}

RunRecord run_of(const std::string& more) {
  return {.document =
              "[run]\nname = \"x\"\nrounds = 2\n[data]\ndataset = \"csv\"\nname = \"m\"\nnumeric = [\"t\"]\n"
              "mean = [70.0]\ndeviation = [12.0]\ntarget = \"ok\"\nclasses = [\"no\", \"yes\"]\n"
              "partition = { kind = \"own\", clients = 20 }\n[model]\nkind = \"softmax\"\n" +
              more};
}

}  // namespace

TEST_CASE("backup: removed objects stay on the disk while a backup is made, and are freed afterwards") {
  const test::TemporaryDirectory directory;
  const auto chunks = directory.path() / "chunks";
  auto store = protocol::open_file_chunk_store(chunks, {.max_bytes = 1 << 24, .durable = true});
  REQUIRE(store);
  (*store)->settle();
  RemovedObjects removed(directory.path());
  const auto is_there = [&](const protocol::Manifest& manifest) {
    const auto files = protocol::StoredFiles::list(chunks);
    REQUIRE(files);
    std::filesystem::remove(directory.path() / "1.chunks");
    return *files->copy(manifest, directory.path() / "1.chunks");
  };
  // Each round builds the next model, which may use the file of a removed one.
  auto model = some_model(**store, 'a');
  const auto first = model->manifest();
  const auto next_round = [&](char value) {
    auto next = some_model(**store, value);
    (*store)->remove(model->manifest().id());
    std::vector<std::shared_ptr<protocol::StoredObject>> old{std::exchange(model, next), nullptr};
    removed.release(std::move(old));
  };
  {
    const auto lock = BackupLock::acquire(directory.path());
    REQUIRE(lock);
    CHECK(backup_is_running(directory.path()));
    for (const char value : {'b', 'c', 'd', 'e'}) next_round(value);
    CHECK(is_there(first));
  }
  CHECK_FALSE(backup_is_running(directory.path()));
  for (const char value : {'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm'}) next_round(value);
  CHECK_FALSE(is_there(first));
  const auto files =
      std::distance(std::filesystem::directory_iterator(chunks), std::filesystem::directory_iterator());
  CHECK(files <= 7);
}

TEST_CASE("backup: two at the same time are refused, and a dead one's lock is free") {
  const Backed coordinator;
  {
    const auto lock = BackupLock::acquire(coordinator.data);
    REQUIRE(lock);
    const auto second = coordinator.backup("second");
    REQUIRE_FALSE(second);
    CHECK(second.error().message ==
          "another backup of " + coordinator.data.string() + " is being made; wait until it has ended");
    CHECK_FALSE(std::filesystem::exists(coordinator.directory.path() / "second"));
  }
  CHECK(coordinator.backup("second"));
}

TEST_CASE("backup: while clients join without a pause, its book and its audit log tell of the same clients") {
  const Backed coordinator;
  std::atomic<bool> stop = false;
  std::vector<std::jthread> writers;
  const std::shared_ptr<void> ends(nullptr, [&](void*) { stop = true; });  // also after a failure
  for (std::uint32_t writer = 0; writer < 2; ++writer)
    writers.emplace_back([&, writer] {
      Enrolment book(coordinator.data);
      for (std::uint32_t i = 0; !stop; ++i) CHECK(book.add(numbered_key(2 * i + writer), 1000));
    });
  std::size_t before = 0;
  for (int i = 0; i < 6; ++i) {
    const std::string name = "backup" + std::to_string(i);
    const auto made = coordinator.backup(name);
    REQUIRE_MESSAGE(made, made.error().message);
    CHECK(made->notes.empty());
    const auto copy = coordinator.directory.path() / name / kBackupData;
    std::size_t added = 0;
    REQUIRE(AuditLog(copy).verify(
        "", [&](const AuditEntry& entry) { added += entry.event.action == "client.added" ? 1U : 0U; }));
    auto book = Enrolment(copy).read();
    REQUIRE(book);
    CHECK(book->clients.size() == added);
    CHECK(added >= before);
    before = added;
    CHECK(Enrolment(copy).take_up(coordinator.key)->empty());  // nothing had to be made good
  }
  stop = true;
  writers.clear();
  CHECK(before > 0);
}

TEST_CASE("restored: numbers and tokens that may have been given since the backup are not given again") {
  const Backed coordinator;
  Enrolment book(coordinator.data);
  const auto old = book.create_tokens({.now = calendar_now(), .lifetime = std::chrono::hours(1)});
  REQUIRE(old);
  REQUIRE(book.add(numbered_key(1), 1000));
  REQUIRE(coordinator.backup("backup"));
  // The token is used and a client joins after the backup was made.
  CHECK(book.redeem({old->front().secret, numbered_key(2), calendar_now()}));
  const auto later = book.add(numbered_key(3), 1000);
  REQUIRE(later);
  const auto restored = coordinator.restore("backup", "new");
  REQUIRE_MESSAGE(restored, restored.error().message);
  CHECK(restored->withdrawn.join_tokens == 1);
  const auto place = coordinator.directory.path() / "new";
  Enrolment again(place);
  const auto thief = again.redeem({old->front().secret, numbered_key(4), calendar_now()});
  REQUIRE_FALSE(thief);
  CHECK(thief.error().message.find("revoked") != std::string::npos);
  const auto fresh = again.add(numbered_key(5), 1000);
  REQUIRE(fresh);
  CHECK(fresh->value() >= later->value() + 49);
  CHECK(again.authenticate(numbered_key(1)));
  // The older book of the backup, put beside the restored log, changes nothing of this.
  std::filesystem::copy_file(coordinator.directory.path() / "backup" / kBackupData / "enrolment.db",
                             place / "enrolment.db", std::filesystem::copy_options::overwrite_existing);
  Enrolment once_more(place);
  REQUIRE(once_more.take_up(coordinator.key));
  CHECK_FALSE(once_more.redeem({old->front().secret, numbered_key(4), calendar_now()}));
  CHECK(once_more.add(numbered_key(6), 1000)->value() > fresh->value());
  REQUIRE(AuditLog(place).verify());
}

TEST_CASE("restored: a copy of a stopped coordinator goes on as it was, if nothing happened since") {
  const Backed coordinator;
  REQUIRE(open_noise_key(coordinator.data));
  Enrolment book(coordinator.data);
  const auto token = book.create_tokens({.now = calendar_now(), .lifetime = std::chrono::hours(1)});
  REQUIRE(token);
  REQUIRE(coordinator.backup("backup"));
  const auto restored = coordinator.restore("backup", "new", /*nothing_since=*/true);
  REQUIRE_MESSAGE(restored, restored.error().message);
  const auto place = coordinator.directory.path() / "new";
  Enrolment again(place);
  const auto joined = again.redeem({token->front().secret, numbered_key(4), calendar_now()});
  REQUIRE_MESSAGE(joined, joined.error().message);
  CHECK(joined->client == token->front().client);
  CHECK(*read_file(place / "noise.key", 1000) == *read_file(coordinator.data / "noise.key", 1000));
  // Without that word the noise is never drawn from the same key again.
  REQUIRE(coordinator.restore("backup", "older"));
  CHECK_FALSE(std::filesystem::exists(coordinator.directory.path() / "older" / "noise.key"));
  // A coordinator that held the directory went on after its backup.
  const auto running = DirectoryLock::acquire(coordinator.data);
  REQUIRE(running);
  REQUIRE(coordinator.backup("live"));
  const auto refused = coordinator.restore("live", "live-again", /*nothing_since=*/true);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kRefused);
  CHECK_FALSE(std::filesystem::exists(coordinator.directory.path() / "live-again"));
}

TEST_CASE("restored: only runs whose models or sums may not be repeated are stopped") {
  const std::map<std::string, std::string> stopped = {
      {"[differential_privacy]\nkind = \"central\"\nepsilon = 8.0\n", "differential privacy"},
      {"[differential_privacy]\nkind = \"tree\"\nepsilon = 8.0\n", "differential privacy"},
      {"[differential_privacy]\nkind = \"local\"\nepsilon = 8.0\n", "differential privacy"},
      {"[secure_aggregation]\nkind = \"exact\"\n", "sums of it"},
      {"[no_such_section]\nx = 1\n", "cannot be read"},
      {"[[[", "cannot be read"}};
  CHECK(why_not_repeated(run_of("")).empty());
  CHECK(why_not_repeated(run_of("[strategy]\nkind = \"fedadam\"\n")).empty());
  for (const auto& [more, why] : stopped) {
    CAPTURE(more);
    CHECK_MESSAGE(why_not_repeated(run_of(more)).find(why) != std::string::npos,
                  why_not_repeated(run_of(more)));
  }
}

TEST_CASE("backup: no path in a manifest leaves the data directory") {
  for (const char* path : {"node.key", "runs.db", "runs/1/policy.toml", "runs/12/chunks/models/1.chunks",
                           "runs/1/results/tracks/a b.safetensors", "audit.log"})
    CHECK_MESSAGE(is_backup_path(path), path);
  for (const char* path : {"",
                           ".",
                           "..",
                           "/",
                           "/node.key",
                           "../node.key",
                           "node.key/",
                           "node.key/x",
                           "runs",
                           "runs/1",
                           "runs/1/",
                           "runs//x",
                           "runs/1/../x",
                           "runs/1/./x",
                           "runs/a/x",
                           "runs/-1/x",
                           "runs/../node.key",
                           "lock",
                           "admin.sock",
                           "evil",
                           "runs/1/a\\b",
                           "runs/1/a\nb",
                           "runs/99999999999999999999/x",
                           "audit.0.log",
                           "audit..log",
                           "audit.01.log",
                           "audit.x.log",
                           "audit.1.log/x"})
    CHECK_FALSE_MESSAGE(is_backup_path(path), path);
  CHECK_FALSE(is_backup_path(std::string_view("runs/1/a\0b", 10)));
  CHECK_FALSE(is_backup_path("runs/1/" + std::string(2000, 'a')));
}

}  // namespace fedge::server
