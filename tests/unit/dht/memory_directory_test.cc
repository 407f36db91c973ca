#include "dht/memory_directory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/rng.h"
#include "tests/support/directory_suite.h"

namespace fedge::dht {
namespace {

class MemoryHarness final : public suite::Harness {
 public:
  MemoryHarness() { directory_.advance(now_); }
  Directory& at(std::size_t) override { return directory_; }
  Time now() const override { return now_; }
  void pass(Duration duration) override {
    now_ += duration;
    directory_.advance(now_);
  }
  bool wait(const std::function<bool()>& condition) override { return condition(); }
  // The directory in memory has no hostile nodes: planted bytes are published.
  void plant(const Record& claimed, std::vector<std::byte> bytes) override {
    Record record = claimed;
    record.bytes = std::move(bytes);
    directory_.publish(record, [](const Result<void>& kept) { CHECK_FALSE(kept); });
  }
  FlawCounts refused() override { return directory_.ignored(); }

 private:
  MemoryDirectory directory_;
  Time now_ = Time(seconds(1000));
};

// Makes each record only once: signing is the slowest step of these tests.
struct Records {
  std::map<std::uint64_t, SecretKey> keys;

  Record make(std::uint64_t node, std::uint64_t sequence, double expires) {
    auto found = keys.find(node);
    if (found == keys.end())
      found = keys.emplace(node, suite::key_number(static_cast<std::uint8_t>(node))).first;
    auto made = make_record(found->second, {sequence, Time(seconds(expires))},
                            NodeStatus{RunId(7), {.round = 2, .labels = {}}});
    REQUIRE(made);
    return *made;
  }
};

ErrorCode refusal(MemoryDirectory& directory, const Record& record, const std::string& says) {
  std::optional<Error> error;
  directory.publish(record, [&](const Result<void>& kept) { error = error_of(kept); });
  REQUIRE(error);
  CHECK(error->message.find(says) != std::string::npos);
  return error->code;
}
void publish(MemoryDirectory& directory, const Record& record) {
  directory.publish(record, [](const Result<void>& kept) { CHECK(kept); });
}

// The changes that a watcher received: signer and sequence; 0: the record is gone.
using Told = std::vector<std::pair<PublicKey, std::uint64_t>>;

Subscription watch(Directory& directory, const std::vector<Record>& records, Told& told) {
  std::vector<Key> keys;
  for (const Record& record : records) keys.push_back(record.key);
  auto subscription = directory.watch({keys}, [&told](const Change& change) {
    told.emplace_back(change.signer, change.record != nullptr ? change.record->sequence : 0);
  });
  REQUIRE(subscription);
  return std::move(*subscription);
}

}  // namespace

FEDGE_DIRECTORY_SUITE("memory directory", MemoryHarness)

TEST_CASE("memory directory: records that end at the same time are told in the order of their keys") {
  Records make;
  std::vector<Record> first, last;
  for (std::uint64_t node = 0; node < 20; ++node) {
    first.push_back(make.make(node, 1, 10));
    last.push_back(make.make(node, 2, 10));
  }
  std::vector<Record> sorted = last;
  std::sort(sorted.begin(), sorted.end(), [](const Record& a, const Record& b) { return a.key < b.key; });
  Told expected;
  for (const Record& record : sorted) expected.emplace_back(record.signer, 0);
  Rng rng(1);
  for (int trial = 0; trial < 3; ++trial) {
    MemoryDirectory directory;
    rng.shuffle(std::span(first));
    rng.shuffle(std::span(last));
    for (const Record& record : first) publish(directory, record);
    for (const Record& record : last) publish(directory, record);
    Told told;
    const Subscription all = watch(directory, first, told);
    told.clear();
    directory.advance(Time(seconds(10)));
    CHECK(told == expected);
  }
}

TEST_CASE("memory directory: a watcher may publish, watch and end its own subscription out of a call") {
  Records make;
  MemoryDirectory directory;
  int calls = 0;
  Told inner;
  std::optional<Subscription> own, other;
  const Record brief = make.make(1, 1, 10), again = make.make(1, 9, 90);
  auto subscription = directory.watch({{brief.key}}, [&](const Change& change) {
    ++calls;
    if (change.record == nullptr) {
      own.reset();
      other = watch(directory, {brief}, inner);
      publish(directory, again);
    }
  });
  REQUIRE(subscription);
  own = std::move(*subscription);
  publish(directory, brief);
  directory.advance(Time(seconds(10)));
  CHECK(calls == 2);
  CHECK(inner == Told{{again.signer, 9}});
}

TEST_CASE("memory directory: a subscription may outlive its directory") {
  Records make;
  Told told;
  std::optional<Subscription> kept;
  {
    MemoryDirectory directory;
    const Record record = make.make(1, 1, 10);
    kept = watch(directory, {record}, told);
    publish(directory, record);
  }
  kept.reset();
  CHECK(told.size() == 1);
}

TEST_CASE("memory directory: bounds are kept, named, and leave what is there alone") {
  Records make;
  const Record first = make.make(1, 1, 60);
  const std::size_t size = first.bytes.size();
  MemoryDirectory directory({.max_records = 2, .max_bytes = 2 * size + size / 2, .max_watched = 3});
  publish(directory, first);
  publish(directory, make.make(2, 1, 60));
  CHECK(refusal(directory, make.make(3, 1, 60), "at most 2 records") == ErrorCode::kResource);
  publish(directory, make.make(1, 2, 60));  // the existing record may be replaced
  CHECK(directory.records() == 2);
  CHECK(directory.bytes() == 2 * size);
  MemoryDirectory small({.max_bytes = size});
  publish(small, first);
  CHECK(refusal(small, make.make(2, 1, 60), "bytes of records") == ErrorCode::kResource);
  Told told;
  std::optional<Subscription> two = watch(directory, {make.make(5, 1, 60), make.make(6, 1, 60)}, told);
  const std::vector<Key> others = {make.make(7, 1, 60).key, make.make(8, 1, 60).key};
  const auto refused = directory.watch({others}, [](const Change&) {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kResource);
  two.reset();
  CHECK(directory.watch({others}, [](const Change&) {}));
}

TEST_CASE("memory directory: of signers under one key so many have room") {
  MemoryDirectory directory;
  std::vector<Record> all;
  for (std::uint32_t i = 0; i <= kMaxSignersPerKey; ++i) {
    std::array<std::uint8_t, 32> seed{};
    std::memcpy(seed.data(), &i, sizeof i);
    const auto made = make_record(SecretKey::from_seed(seed), {1, Time(seconds(60))},
                                  Announcement{{{"192.0.2.7", 7433}}, "fashion", RunId(7)});
    REQUIRE(made);
    all.push_back(*made);
  }
  for (std::size_t i = 0; i < kMaxSignersPerKey; ++i) publish(directory, all[i]);
  CHECK(refusal(directory, all.back(), "at most 200 signers under one key") == ErrorCode::kResource);
}

TEST_CASE("memory directory: whatever is published and expires, it holds what a plain map would") {
  Records make;
  MemoryDirectory directory;
  std::map<PublicKey, Record> plain;
  Told told, expected;
  std::vector<Record> any;
  for (std::uint64_t node = 0; node < 10; ++node) any.push_back(make.make(node, 1, 1));
  const Subscription all = watch(directory, any, told);
  Rng rng(2);
  double now = 0;
  for (int step = 0; step < 3'000; ++step) {
    if (rng.below(10) == 0) {
      now += rng.uniform();
      std::map<std::pair<Time, Key>, PublicKey> ended;
      for (const auto& [signer, held] : plain)
        if (held.expires <= Time(seconds(now))) ended[{held.expires, held.key}] = signer;
      for (const auto& [end, signer] : ended) {
        plain.erase(signer);
        expected.emplace_back(signer, 0);
      }
      directory.advance(Time(seconds(now)));
      continue;
    }
    const double lasts = std::max(0.0, now + 10 * rng.uniform() - 0.5);
    const Record next = make.make(rng.below(10), 1 + rng.below(300), lasts);
    const auto held = plain.find(next.signer);
    const bool follows = held == plain.end() || next.sequence > held->second.sequence;
    const bool same = held != plain.end() && next == held->second;
    const bool valid = next.expires > Time(seconds(now)) && (follows || same);
    directory.publish(next, [&](const Result<void>& kept) { CHECK(kept.has_value() == valid); });
    if (!valid || same) continue;
    plain[next.signer] = next;
    expected.emplace_back(next.signer, next.sequence);
  }
  CHECK(told == expected);
  CHECK(directory.records() == plain.size());
  std::size_t bytes = 0;
  for (const auto& [signer, record] : plain) bytes += record.bytes.size();
  CHECK(directory.bytes() == bytes);
}

}  // namespace fedge::dht
