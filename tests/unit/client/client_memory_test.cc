#include "client/local/client_memory.h"

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "tests/unit/learn/idx_fixture.h"

namespace fedge::client {
namespace {

ClientMemory memory_of(std::uint32_t round) {
  return {.round = RoundNumber(round),
          .control = {1, -2, std::int64_t{1} << 40},
          .residual = {0.5F, -0.25F},
          .personal = {3, 4, 5}};
}

bool same(const ClientMemory& a, const ClientMemory& b) {
  return a.round == b.round && a.control == b.control && a.residual == b.residual && a.personal == b.personal;
}

}  // namespace

TEST_CASE("client memory: goes on from the task that was accepted last, in memory and in files alike") {
  const learn::test::TemporaryDirectory directory;
  VolatileMemory in_memory;
  FileMemory in_files(directory.path() / "run");
  for (MemoryStore* store : {static_cast<MemoryStore*>(&in_memory), static_cast<MemoryStore*>(&in_files)}) {
    const auto fresh = store->load(RoundNumber(0));
    REQUIRE(fresh);
    REQUIRE(*fresh);
    CHECK((*fresh)->control.empty());
    REQUIRE(store->save(memory_of(3)));
    // Task 5 continues from task 3; the verdict on task 5's update is still unknown.
    REQUIRE(store->load(RoundNumber(3)));
    REQUIRE(store->save(memory_of(5)));
    const auto refused = store->load(RoundNumber(3));  // the update of task 5 was not accepted
    REQUIRE(refused);
    REQUIRE(*refused);
    CHECK(same(**refused, memory_of(3)));
    REQUIRE(store->save(memory_of(6)));
    const auto accepted = store->load(RoundNumber(6));  // the update of task 6 was accepted
    REQUIRE(accepted);
    REQUIRE(*accepted);
    CHECK(same(**accepted, memory_of(6)));
    const auto forgotten = store->load(RoundNumber(3));
    REQUIRE(forgotten);
    CHECK_FALSE(*forgotten);
  }
}

TEST_CASE("client memory: survives the process, and a run that begins again forgets it") {
  const learn::test::TemporaryDirectory directory;
  REQUIRE(FileMemory(directory.path()).save(memory_of(7)));
  FileMemory again(directory.path());
  const auto loaded = again.load(RoundNumber(7));
  REQUIRE(loaded);
  REQUIRE(*loaded);
  CHECK(same(**loaded, memory_of(7)));
  REQUIRE(again.load(RoundNumber(0)));
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("client memory: tracks that are there no more are forgotten, and nothing else") {
  const learn::test::TemporaryDirectory directory;
  const auto exists = [&](const char* name) { return std::filesystem::exists(directory.path() / name); };
  for (const std::uint32_t track : {0U, 1U, 2U, 12U})
    REQUIRE(FileMemory(directory.path(), TrackId(track)).save(memory_of(4)));
  for (const char* other : {"published-labels", "track-", "track-1x", "track--1", "track-99999999999"})
    REQUIRE(write_file_atomic(directory.path() / other, "not a memory"));
  const std::vector<TrackId> without_1 = {TrackId(0), TrackId(2), TrackId(3), TrackId(12)};
  keep_only(directory.path(), without_1);
  CHECK_FALSE(exists("track-1"));
  for (const TrackId track : {TrackId(0), TrackId(2), TrackId(12)}) {
    const auto kept = FileMemory(directory.path(), track).load(RoundNumber(4));
    REQUIRE(kept);
    REQUIRE(*kept);
    CHECK(same(**kept, memory_of(4)));
  }
  const std::vector<TrackId> only_12 = {TrackId(12)};
  keep_only(directory.path(), only_12);
  CHECK_FALSE(exists("task-4"));
  CHECK_FALSE(exists("track-2"));
  CHECK(exists("track-12/task-4"));
  for (const char* other : {"published-labels", "track-", "track-1x", "track--1", "track-99999999999"})
    CHECK(exists(other));
  keep_only(directory.path() / "never made", only_12);  // no memory exists
}

TEST_CASE("client memory: a file of an earlier version is read") {
  const learn::test::TemporaryDirectory directory;
  FileMemory store(directory.path());
  std::string text = "fedge client memory 1\n";
  const std::array<std::uint64_t, 2> sizes = {1, 2};
  const std::array<std::int64_t, 1> control = {-9};
  const std::array<float, 2> residual = {0.5F, 2};
  text.append(reinterpret_cast<const char*>(sizes.data()), sizeof sizes);
  text.append(reinterpret_cast<const char*>(control.data()), sizeof control);
  text.append(reinterpret_cast<const char*>(residual.data()), sizeof residual);
  const Digest digest = sha256(std::as_bytes(std::span(text)));
  text.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  REQUIRE(write_file_atomic(directory.path() / "task-2", text));
  const auto loaded = store.load(RoundNumber(2));
  REQUIRE_MESSAGE(loaded, loaded.error().message);
  REQUIRE(*loaded);
  CHECK(same(**loaded, {.round = RoundNumber(2), .control = {-9}, .residual = {0.5F, 2}}));
}

TEST_CASE("client memory: a file with any byte changed or missing is refused by name") {
  const learn::test::TemporaryDirectory directory;
  FileMemory store(directory.path());
  REQUIRE(store.save(memory_of(2)));
  const auto file = directory.path() / "task-2";
  const auto whole = read_file(file, 1 << 20);
  REQUIRE(whole);
  for (std::size_t i = 0; i < whole->size(); ++i) {
    std::string damaged = *whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    REQUIRE(write_file_atomic(file, damaged));
    const auto loaded = store.load(RoundNumber(2));
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().code == ErrorCode::kCorrupt);
    CHECK(loaded.error().message.find("task-2") != std::string::npos);
    REQUIRE(write_file_atomic(file, std::string_view(*whole).substr(0, i)));
    CHECK_FALSE(store.load(RoundNumber(2)));
  }
}

}  // namespace fedge::client
