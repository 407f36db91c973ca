// Tests RemoteDirectory, the common part of directories on other nodes, over a network simulated in memory.
#include "dht/remote_directory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/support/directory_suite.h"

namespace fedge::dht {
namespace {

constexpr Duration kDecades = std::chrono::hours{24 * 365 * 30};

// A network that keeps every value and counts each `get`.
class PlainNetwork final : public RemoteDirectory {
 public:
  PlainNetwork() : RemoteDirectory(RemoteOptions{}) {}
  std::map<Key, Values> values;
  int looks = 0;

 private:
  void put(const Record& record, Done done) override {
    values[record.key].push_back(record.bytes);
    done({});
  }
  void get(const Key& key, Got got) override {
    ++looks;
    got(values[key]);
  }
};

Record status(std::uint64_t sequence, Time expires) {
  auto made = make_record(suite::key_number(1), {sequence, expires},
                          NodeStatus{RunId(7), {.round = 2, .labels = {}}});
  REQUIRE(made);
  return *made;
}

std::optional<ErrorCode> publish(Directory& directory, const Record& record) {
  std::optional<ErrorCode> refusal;
  directory.publish(record, [&](const Result<void>& kept) {
    if (!kept) refusal = kept.error().code;
  });
  return refusal;
}

std::vector<Record> lookup(Directory& directory, const Key& key) {
  std::vector<Record> records;
  directory.lookup(key, [&](const Result<std::vector<Record>>& found) { records = *found; });
  return records;
}

// Watches a key and records the sequence numbers; 0: the record is gone.
Subscription watch(Directory& directory, const Key& key, std::vector<std::uint64_t>& told) {
  auto watched = directory.watch({{key}, seconds(10)}, [&told](const Change& change) {
    told.push_back(change.record != nullptr ? change.record->sequence : 0);
  });
  REQUIRE(watched);
  return std::move(*watched);
}

// A clock that is decades ahead is corrected. Then a process that started after the correction publishes.
void put_right(Directory& directory) {
  const Time right = Time(seconds(1'000'000)), ahead = right + kDecades;
  directory.advance(ahead);
  const Record early = status(50, ahead + seconds(60)), fresh = status(4, right + seconds(60));
  std::vector<std::uint64_t> told;
  const Subscription watching = watch(directory, early.key, told);
  CHECK_FALSE(publish(directory, early));
  directory.advance(ahead + seconds(10));
  CHECK(lookup(directory, early.key) == std::vector{early});
  CHECK(publish(directory, fresh) == ErrorCode::kStale);
  directory.advance(right);
  CHECK(lookup(directory, early.key).empty());
  CHECK_FALSE(publish(directory, fresh));
  CHECK(lookup(directory, early.key) == std::vector{fresh});
  directory.advance(right + seconds(10));
  directory.advance(right + seconds(60));
  CHECK(told == std::vector<std::uint64_t>{50, 0, 4, 0});
}

}  // namespace

TEST_CASE(
    "N6 row 15: memory directory: a clock that was decades ahead is put right, and records count again") {
  MemoryDirectory directory;
  put_right(directory);
}

TEST_CASE(
    "N6 row 15: remote directory: a clock that was decades ahead is put right, and records count again") {
  PlainNetwork directory;
  put_right(directory);
}

TEST_CASE(
    "N6 row 15: remote directory: what a clock's leap forward took for ended is there when it is put right") {
  PlainNetwork directory;
  const Time right = Time(seconds(1'000'000));
  directory.advance(right);
  const Record record = status(5, right + seconds(60));
  CHECK_FALSE(publish(directory, record));
  CHECK(lookup(directory, record.key) == std::vector{record});
  directory.advance(right + kDecades);
  CHECK(lookup(directory, record.key).empty());
  directory.advance(right + seconds(1));
  CHECK(lookup(directory, record.key) == std::vector{record});
  CHECK_FALSE(publish(directory, record));
}

TEST_CASE("N6 row 15: remote directory: looks stay as far apart as before when the calendar is put back") {
  PlainNetwork directory;
  const Time start = Time(seconds(1'000'000));
  directory.advance(start);
  std::vector<std::uint64_t> told;
  const Subscription watching = watch(directory, status(1, start + seconds(60)).key, told);
  CHECK(directory.looks == 1);
  Time now = start;
  for (const double back : {1.0, 9'000.0, 900'000.0}) {
    directory.advance(now + seconds(4));
    now = now + seconds(4 - back);
    const int before = directory.looks;
    directory.advance(now);
    directory.advance(now + seconds(5.9));
    CHECK(directory.looks == before);
    now += seconds(6);
    directory.advance(now);
    CHECK(directory.looks == before + 1);
  }
}

}  // namespace fedge::dht
