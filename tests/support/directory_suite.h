// The behaviour that every Directory must show, as test cases for each implementation:
//   FEDGE_DIRECTORY_SUITE("memory directory", MemoryHarness)
// A harness simulates or runs one directory that is accessed at three places.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dht/directory.h"

namespace fedge::dht::suite {

class Harness {
 public:
  static constexpr std::size_t kPlaces = 3;
  virtual ~Harness() = default;
  virtual Directory& at(std::size_t place) = 0;
  virtual Time now() const = 0;
  // Advances the calendar at all places.
  virtual void pass(Duration duration) = 0;
  // Processes events until `condition` holds; returns false if it never does.
  virtual bool wait(const std::function<bool()>& condition) = 0;
  // A hostile node stores these bytes under the record's key and returns them to every lookup.
  virtual void plant(const Record& claimed, std::vector<std::byte> bytes) = 0;
  // Returns how many records were refused, by flaw, over all places.
  virtual FlawCounts refused() = 0;
};

inline SecretKey key_number(std::uint8_t number) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = number;
  return SecretKey::from_seed(seed);
}

inline Record status(const Harness& world, std::uint8_t node, std::uint64_t sequence, double lasts = 60) {
  auto made = make_record(key_number(node), {sequence, world.now() + seconds(lasts)},
                          NodeStatus{RunId(7), {.round = 2, .latency_ms = double(sequence), .labels = {}}});
  REQUIRE(made);
  return *made;
}

inline Record announcement(const Harness& world, std::uint8_t node, std::uint64_t sequence) {
  auto made = make_record(key_number(node), {sequence, world.now() + seconds(60)},
                          Announcement{{{"192.0.2.7", 7433}}, "fashion", RunId(7)});
  REQUIRE(made);
  return *made;
}

inline std::optional<ErrorCode> publish(Harness& world, std::size_t place, const Record& record) {
  std::optional<Result<void>> outcome;
  world.at(place).publish(record, [&](const Result<void>& result) { outcome = result; });
  REQUIRE(world.wait([&] { return outcome.has_value(); }));
  if (*outcome) return std::nullopt;
  CHECK_FALSE(outcome->error().message.empty());
  return outcome->error().code;
}

inline std::vector<Record> lookup(Harness& world, std::size_t place, const Key& key) {
  std::optional<Result<std::vector<Record>>> outcome;
  world.at(place).lookup(key, [&](const Result<std::vector<Record>>& result) { outcome = result; });
  REQUIRE(world.wait([&] { return outcome.has_value(); }));
  REQUIRE(*outcome);
  return **outcome;
}

// Looks the key up repeatedly: some overlays need time until all places see the same records.
inline bool comes_to_be(Harness& world, const Key& key, const std::vector<Record>& expected) {
  for (std::size_t place = 0; place < Harness::kPlaces; ++place)
    for (int attempt = 0; lookup(world, place, key) != expected; ++attempt)
      if (attempt == 20) return false;
  return true;
}

inline void found_elsewhere(Harness& world) {
  const Record mine = status(world, 1, 9);
  CHECK_FALSE(publish(world, 0, mine));
  CHECK(comes_to_be(world, mine.key, {mine}));
  CHECK(lookup(world, 1, status(world, 2, 9).key).empty());
}

inline void latest_counts(Harness& world) {
  const Record first = status(world, 1, 5), second = status(world, 1, 6);
  CHECK_FALSE(publish(world, 0, first));
  CHECK(comes_to_be(world, first.key, {first}));
  CHECK_FALSE(publish(world, 0, second));
  CHECK(comes_to_be(world, first.key, {second}));
  CHECK(publish(world, 0, first) == ErrorCode::kStale);
  CHECK(publish(world, 0, status(world, 1, 6, 50)) == ErrorCode::kStale);
  CHECK_FALSE(publish(world, 0, second));  // publishing the same record again is no error
  CHECK(comes_to_be(world, first.key, {second}));
}

inline void signers_side_by_side(Harness& world) {
  std::vector<Record> all;
  for (std::uint8_t node = 1; node <= 5; ++node) all.push_back(announcement(world, node, 10U + node));
  for (std::size_t i = 0; i < all.size(); ++i) CHECK_FALSE(publish(world, i % 3, all[i]));
  std::sort(all.begin(), all.end(), [](const Record& a, const Record& b) { return a.signer < b.signer; });
  CHECK(comes_to_be(world, all[0].key, all));
}

inline void ends_in_time(Harness& world) {
  const Record brief = status(world, 1, 1, 30), longer = status(world, 2, 1, 60);
  CHECK_FALSE(publish(world, 0, brief));
  CHECK_FALSE(publish(world, 0, longer));
  CHECK(comes_to_be(world, brief.key, {brief}));
  world.pass(seconds(31));
  CHECK(comes_to_be(world, brief.key, {}));
  CHECK(comes_to_be(world, longer.key, {longer}));
  CHECK(publish(world, 1, brief) == ErrorCode::kStale);
  const Record again = status(world, 1, 2, 30);
  CHECK_FALSE(publish(world, 0, again));
  CHECK(comes_to_be(world, brief.key, {again}));
}

inline void watchers_are_told(Harness& world) {
  const Record there = status(world, 1, 5, 30), later = status(world, 1, 6, 40), other = status(world, 2, 1);
  CHECK_FALSE(publish(world, 0, there));
  CHECK(comes_to_be(world, there.key, {there}));
  std::vector<std::uint64_t> told;  // sequence numbers; 0: the record is gone
  auto subscription = world.at(1).watch({{there.key, there.key}, seconds(0.05)}, [&](const Change& change) {
    CHECK(change.key == there.key);
    CHECK(change.signer == there.signer);
    told.push_back(change.record != nullptr ? change.record->sequence : 0);
  });
  REQUIRE(subscription);
  CHECK(world.wait([&] { return told.size() == 1; }));
  CHECK_FALSE(publish(world, 2, other));
  CHECK_FALSE(publish(world, 0, later));
  CHECK(world.wait([&] { return told.size() == 2; }));
  world.pass(seconds(41));
  CHECK(world.wait([&] { return told.size() == 3; }));
  CHECK(told == std::vector<std::uint64_t>{5, 6, 0});
  *subscription = Subscription();
  const Record last = status(world, 1, 7);
  CHECK_FALSE(publish(world, 0, last));
  CHECK(comes_to_be(world, last.key, {last}));
  CHECK(told.size() == 3);
}

inline void largest_passes(Harness& world) {
  NodeRecord record{.latency_ms = 1.0, .availability = 0.5};
  record.labels.assign(900, 1.0);
  const auto made = make_record(key_number(1), {3, world.now() + seconds(60)}, NodeStatus{RunId(7), record});
  REQUIRE(made);
  CHECK(made->bytes.size() > 3600);
  CHECK_FALSE(publish(world, 0, *made));
  CHECK(comes_to_be(world, made->key, {*made}));
}

inline void false_ones_are_ignored(Harness& world) {
  const Record mine = announcement(world, 1, 8), theirs = announcement(world, 2, 1);
  CHECK_FALSE(publish(world, 0, mine));
  CHECK(comes_to_be(world, mine.key, {mine}));
  const FlawCounts before = world.refused();
  std::vector<std::byte> forged = theirs.bytes;
  forged.back() ^= std::byte{1};  // corrupts the signature
  world.plant(theirs, forged);
  world.plant(theirs, std::vector<std::byte>(3000, std::byte{7}));
  world.plant(theirs, std::vector<std::byte>(kMaxSignedRecord + 1, std::byte{7}));
  world.plant(theirs, status(world, 2, 1).bytes);  // valid, but signed for another key
  CHECK(comes_to_be(world, mine.key, {mine}));
  for (const Flaw flaw : {Flaw::kForged, Flaw::kMalformed, Flaw::kOversized, Flaw::kMisplaced}) {
    CAPTURE(std::string(to_string(flaw)));
    CHECK(world.wait([&] {
      lookup(world, 1, mine.key);
      return world.refused()[flaw] > before[flaw];
    }));
  }
}

inline void invalid_is_refused(Harness& world) {
  Record damaged = status(world, 1, 9);
  damaged.bytes[40] ^= std::byte{1};
  CHECK(publish(world, 0, damaged) == ErrorCode::kInvalid);
  Record misplaced = status(world, 1, 9);
  misplaced.key = status(world, 2, 9).key;
  CHECK(publish(world, 0, misplaced) == ErrorCode::kInvalid);
  CHECK(lookup(world, 0, misplaced.key).empty());
}

}  // namespace fedge::dht::suite

#define FEDGE_DIRECTORY_CASE(name, Harness, function) \
  TEST_CASE(name) {                                   \
    Harness world;                                    \
    ::fedge::dht::suite::function(world);             \
  }

#define FEDGE_DIRECTORY_SUITE(what, Harness)                                                              \
  FEDGE_DIRECTORY_CASE(what ": a record is found at every place as it was, and no other", Harness,        \
                       found_elsewhere)                                                                   \
  FEDGE_DIRECTORY_CASE(what ": of one signer's records the one with the largest number counts", Harness,  \
                       latest_counts)                                                                     \
  FEDGE_DIRECTORY_CASE(what ": records of several signers lie beside each other", Harness,                \
                       signers_side_by_side)                                                              \
  FEDGE_DIRECTORY_CASE(what ": a record is gone at its time, and one published again lives on", Harness,  \
                       ends_in_time)                                                                      \
  FEDGE_DIRECTORY_CASE(what ": watchers are told what is there, what comes and what ends, once", Harness, \
                       watchers_are_told)                                                                 \
  FEDGE_DIRECTORY_CASE(what ": the largest record arrives whole", Harness, largest_passes)                \
  FEDGE_DIRECTORY_CASE(what                                                                               \
                       ": forged, malformed, oversized and misplaced records are "                        \
                       "ignored and counted",                                                             \
                       Harness, false_ones_are_ignored)                                                   \
  FEDGE_DIRECTORY_CASE(what ": what is no valid record is not published", Harness, invalid_is_refused)
