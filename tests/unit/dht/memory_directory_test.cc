#include "dht/memory_directory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/rng.h"

namespace fedge::dht {
namespace {

Key key_of(std::uint64_t number) { return sha256("key " + std::to_string(number)); }
Time at(double time) { return Time{} + seconds(time); }

Record record(std::uint64_t key, std::uint32_t round, std::uint64_t sequence, double expires,
              std::size_t bytes = 3) {
  return {key_of(key), round, sequence, at(expires), std::vector<std::byte>(bytes, std::byte(round))};
}

std::optional<Record> found(Directory& directory, std::uint64_t key) {
  std::optional<std::optional<Record>> answer;
  directory.lookup(key_of(key), [&](const std::optional<Record>& result) { answer = result; });
  REQUIRE(answer);
  return *answer;
}

ErrorCode refusal(const Result<void>& result) {
  REQUIRE_FALSE(result);
  CHECK_FALSE(result.error().message.empty());
  return result.error().code;
}

// What a watcher was told: key number and sequence, 0 for gone.
using Told = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Subscription watch(Directory& directory, const std::vector<std::uint64_t>& keys, Told& told) {
  std::vector<Key> hashes;
  std::map<Key, std::uint64_t> numbers;
  for (const std::uint64_t key : keys) {
    hashes.push_back(key_of(key));
    numbers[key_of(key)] = key;
  }
  auto subscription = directory.watch(hashes, [numbers, &told](const Change& change) {
    told.emplace_back(numbers.at(change.key), change.record != nullptr ? change.record->sequence : 0);
  });
  REQUIRE(subscription);
  return std::move(*subscription);
}

}  // namespace

TEST_CASE("directory: a record that was published is found as it was, and no other") {
  MemoryDirectory directory;
  const Record mine = record(1, 4, 9, 60, 100);
  REQUIRE(directory.publish(mine));
  CHECK(found(directory, 1) == mine);
  CHECK_FALSE(found(directory, 2));
}

TEST_CASE("directory: the later record is kept, by round, then by sequence") {
  MemoryDirectory directory;
  REQUIRE(directory.publish(record(1, 2, 7, 60)));
  CHECK(refusal(directory.publish(record(1, 2, 7, 90))) == ErrorCode::kStale);
  CHECK(refusal(directory.publish(record(1, 2, 6, 90))) == ErrorCode::kStale);
  CHECK(refusal(directory.publish(record(1, 1, 100, 90))) == ErrorCode::kStale);
  CHECK(found(directory, 1)->sequence == 7);
  REQUIRE(directory.publish(record(1, 2, 8, 60)));
  REQUIRE(directory.publish(record(1, 3, 1, 60)));
  CHECK(found(directory, 1)->round == 3);
  CHECK(directory.records() == 1);
}

TEST_CASE("directory: a record is gone at its time, and one published again lives on") {
  MemoryDirectory directory;
  REQUIRE(directory.publish(record(1, 1, 1, 10)));
  REQUIRE(directory.publish(record(2, 1, 1, 10)));
  directory.expire(at(9.999));
  CHECK(found(directory, 1));
  REQUIRE(directory.publish(record(2, 1, 2, 20)));
  directory.expire(at(10));
  CHECK_FALSE(found(directory, 1));
  CHECK(found(directory, 2)->sequence == 2);
  CHECK(directory.bytes() == 3);
  directory.expire(at(5));  // time does not go back
  CHECK(refusal(directory.publish(record(3, 1, 1, 10))) == ErrorCode::kStale);
  // With its record forgotten, its name is free again.
  REQUIRE(directory.publish(record(1, 1, 1, 30)));
  directory.expire(at(1000));
  CHECK(directory.records() == 0);
  CHECK(directory.bytes() == 0);
}

TEST_CASE("directory: watchers are told what is there, what comes, and what ends, once each and in order") {
  MemoryDirectory directory;
  REQUIRE(directory.publish(record(1, 1, 5, 30)));
  Told first, second;
  const Subscription one = watch(directory, {1, 2, 2, 3}, first);
  Subscription two = watch(directory, {2}, second);
  REQUIRE(directory.publish(record(2, 1, 6, 20)));
  REQUIRE(directory.publish(record(9, 1, 1, 20)));
  CHECK_FALSE(directory.publish(record(2, 1, 6, 99)));
  REQUIRE(directory.publish(record(2, 1, 7, 40)));
  CHECK(second == Told{{2, 6}, {2, 7}});
  two = Subscription();
  directory.expire(at(35));
  directory.expire(at(35));
  directory.expire(at(50));
  CHECK(first == Told{{1, 5}, {2, 6}, {2, 7}, {1, 0}, {2, 0}});
  CHECK(second == Told{{2, 6}, {2, 7}});
}

TEST_CASE("directory: records that end at the same time are told in the order of their keys") {
  std::vector<std::uint64_t> order;
  for (std::uint64_t key = 0; key < 40; ++key) order.push_back(key);
  std::vector<std::uint64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end(),
            [](std::uint64_t a, std::uint64_t b) { return key_of(a) < key_of(b); });
  Told expected;
  for (const std::uint64_t key : sorted) expected.emplace_back(key, 0);
  Rng rng(1);
  for (int trial = 0; trial < 3; ++trial) {
    MemoryDirectory directory;
    rng.shuffle(std::span(order));
    for (const std::uint64_t key : order) REQUIRE(directory.publish(record(key, 1, 1, 10)));
    for (std::uint64_t sequence = 2; sequence < 20; ++sequence)
      for (const std::uint64_t key : order) REQUIRE(directory.publish(record(key, 1, sequence, 10)));
    Told told;
    const Subscription all = watch(directory, order, told);
    told.clear();
    directory.expire(at(10));
    CHECK(told == expected);
  }
}

TEST_CASE("directory: a watcher may publish, watch and end its own subscription out of a call") {
  MemoryDirectory directory;
  int calls = 0;
  Told inner;
  std::optional<Subscription> own, other;
  auto subscription = directory.watch({key_of(1)}, [&](const Change& change) {
    ++calls;
    if (change.record == nullptr) {
      own.reset();
      other = watch(directory, {1, 2}, inner);
      CHECK(directory.publish(record(1, 9, 9, 90)));
    }
  });
  REQUIRE(subscription);
  own = std::move(*subscription);
  REQUIRE(directory.publish(record(1, 1, 1, 10)));
  REQUIRE(directory.publish(record(2, 1, 3, 10)));
  directory.expire(at(10));
  CHECK(calls == 2);
  CHECK(found(directory, 1)->sequence == 9);
  // Both end at one time, key 2, whose hash is the smaller, first: by then nobody watches it.
  CHECK(inner == Told{{1, 9}});
}

TEST_CASE("directory: a subscription may outlive its directory") {
  Told told;
  std::optional<Subscription> kept;
  {
    MemoryDirectory directory;
    kept = watch(directory, {1}, told);
    REQUIRE(directory.publish(record(1, 1, 1, 10)));
  }
  kept.reset();
  CHECK(told.size() == 1);
}

TEST_CASE("directory: bounds are kept, named, and leave what is there alone") {
  MemoryDirectory directory({.max_records = 2, .max_bytes = 10, .max_watched = 3});
  CHECK(refusal(directory.publish(record(1, 1, 1, 60, protocol::kMaxRecordBytes + 1))) ==
        ErrorCode::kInvalid);
  REQUIRE(directory.publish(record(1, 1, 1, 60, 4)));
  const auto too_much = directory.publish(record(2, 1, 1, 60, 7));
  CHECK(refusal(too_much) == ErrorCode::kResource);
  CHECK(too_much.error().message == "the directory is full: it holds at most 10 bytes of values");
  REQUIRE(directory.publish(record(2, 1, 1, 60, 6)));
  const auto too_many = directory.publish(record(3, 1, 1, 60, 0));
  CHECK(refusal(too_many) == ErrorCode::kResource);
  CHECK(too_many.error().message == "the directory is full: it holds at most 2 records");
  // What is there may be replaced, within the bound.
  REQUIRE(directory.publish(record(1, 2, 1, 60, 1)));
  CHECK(refusal(directory.publish(record(1, 3, 1, 60, 5))) == ErrorCode::kResource);
  CHECK(found(directory, 1)->round == 2);
  CHECK(directory.bytes() == 7);
  Told told;
  std::optional<Subscription> two = watch(directory, {5, 6}, told);
  const auto refused = directory.watch({key_of(7), key_of(8)}, [](const Change&) {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kResource);
  two.reset();
  CHECK(directory.watch({key_of(7), key_of(8)}, [](const Change&) {}));
}

TEST_CASE("directory: whatever is published and expires, it holds what a plain map would") {
  MemoryDirectory directory;
  std::map<std::uint64_t, Record> plain;
  Told told, expected;
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 0; key < 30; ++key) keys.push_back(key);
  const Subscription all = watch(directory, keys, told);
  Rng rng(2);
  double now = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (rng.below(10) == 0) {
      now += rng.uniform();
      std::map<std::pair<Time, Key>, std::uint64_t> ended;
      for (const auto& [key, held] : plain)
        if (held.expires <= at(now)) ended[{held.expires, held.key}] = key;
      for (const auto& [end, key] : ended) {
        plain.erase(key);
        expected.emplace_back(key, 0);
      }
      directory.expire(at(now));
      continue;
    }
    const std::uint64_t key = rng.below(30);
    const Record next = record(key, static_cast<std::uint32_t>(rng.below(4)), 1 + rng.below(1000),
                               now + 10 * rng.uniform() - 0.5, rng.below(9));
    const auto held = plain.find(key);
    const bool follows = held == plain.end() || std::pair(next.round, next.sequence) >
                                                    std::pair(held->second.round, held->second.sequence);
    const bool valid = next.expires > at(now) && follows;
    CHECK(directory.publish(next).has_value() == valid);
    if (!valid) continue;
    plain[key] = next;
    expected.emplace_back(key, next.sequence);
  }
  CHECK(told == expected);
  CHECK(directory.records() == plain.size());
  std::size_t bytes = 0;
  for (const std::uint64_t key : keys) {
    const auto held = plain.find(key);
    CHECK(found(directory, key) == (held == plain.end() ? std::nullopt : std::optional(held->second)));
    bytes += held == plain.end() ? 0 : held->second.value.size();
  }
  CHECK(directory.bytes() == bytes);
}

}  // namespace fedge::dht
