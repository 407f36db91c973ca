#include "server/directory/node_records.h"

#include <doctest/doctest.h>

#include <array>
#include <utility>
#include <vector>

#include "dht/memory_directory.h"
#include "dht/node_record.h"

namespace fedge::server {
namespace {

protocol::PublishRecord message(const NodeRecord& record) {
  const auto value = dht::encode_node_record(record);
  REQUIRE(value);
  return {RunId(1), RoundNumber(record.round), record.sequence, *value};
}

}  // namespace

TEST_CASE("node records: what a client publishes is told on under its own number, the latest alone") {
  std::vector<std::pair<ClientId, NodeRecord>> told;
  NodeRecords nodes({.clients = 3, .every = seconds(10)},
                    [&](ClientId client, const NodeRecord& record) { told.emplace_back(client, record); });
  const NodeRecord first{.round = 1, .sequence = 7, .latency_ms = 12, .labels = {1, 0}};
  const NodeRecord second{.round = 2, .sequence = 1, .latency_ms = 15, .labels = {}};
  REQUIRE(nodes.received(ClientId(2), message(first), Time(seconds(1))));
  REQUIRE(nodes.received(ClientId(2), message(second), Time(seconds(2))));
  CHECK(nodes.received(ClientId(2), message(first), Time(seconds(3))).error().code == ErrorCode::kStale);
  REQUIRE(told.size() == 2);
  CHECK(told[0] == std::pair(ClientId(2), first));
  CHECK(told[1] == std::pair(ClientId(2), second));
  // After the expiry an earlier sequence is accepted: the client may have restarted from scratch.
  CHECK(nodes.received(ClientId(2), message(first), Time(seconds(60))));
}

TEST_CASE("node records: bytes that are no record, and clients that are none of the run's, change nothing") {
  int told = 0;
  NodeRecords nodes({.clients = 2, .every = seconds(10)}, [&](ClientId, const NodeRecord&) { ++told; });
  const protocol::PublishRecord garbage{RunId(1), RoundNumber(1), 1,
                                        std::vector<std::byte>(40, std::byte{9})};
  CHECK(nodes.received(ClientId(0), garbage, Time(seconds(1))).error().code == ErrorCode::kInvalid);
  // Clients outside the run use no memory either.
  for (const std::uint32_t stranger : {2U, 7U, 8U}) {
    const auto refused = nodes.received(ClientId(stranger), message({}), Time(seconds(1)));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kInvalid);
  }
  REQUIRE(nodes.received(ClientId(0), message({}), Time(seconds(1))));
  REQUIRE(nodes.received(ClientId(1), message({}), Time(seconds(1))));
  CHECK(told == 2);
}

// A directory that refuses every other watch.
class Reluctant final : public dht::Directory {
 public:
  void publish(const dht::Record& record, Done done) override { table_.publish(record, std::move(done)); }
  void lookup(const dht::Key& key, Found found) override { table_.lookup(key, std::move(found)); }
  Result<dht::Subscription> watch(Watch watch, OnChange on_change) override {
    if (++asked_ % 2 == 1) return Error{ErrorCode::kResource, "too many keys"};
    return table_.watch(std::move(watch), std::move(on_change));
  }
  void advance(Time now) override { table_.advance(now); }
  dht::FlawCounts ignored() const override { return table_.ignored(); }

 private:
  dht::MemoryDirectory table_;
  int asked_ = 0;
};

SecretKey key_of_node(std::uint8_t number) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = number;
  return SecretKey::from_seed(seed);
}

TEST_CASE("node records: a client that could not be followed is followed when it is asked for again") {
  Reluctant directory;
  directory.advance(Time(seconds(1)));
  int told = 0;
  NodeRecords nodes({.run = RunId(1), .clients = 1, .every = seconds(10), .directory = &directory},
                    [&](ClientId, const NodeRecord&) { ++told; });
  const auto publish = [&](const SecretKey& key, std::uint64_t sequence) {
    const auto record = dht::make_record(key, {sequence, Time(seconds(100))},
                                         dht::NodeStatus{RunId(1), NodeRecord{.sequence = sequence}});
    REQUIRE(record);
    directory.publish(*record, [](const Result<void>& kept) { CHECK(kept); });
  };
  const SecretKey first = key_of_node(1), second = key_of_node(2);
  CHECK(nodes.follow(ClientId(0), first.public_key()).error().code == ErrorCode::kResource);
  publish(first, 1);
  CHECK(told == 0);
  REQUIRE(nodes.follow(ClientId(0), first.public_key()));
  CHECK(told == 1);
  REQUIRE(nodes.follow(ClientId(0), first.public_key()));
  // With a new key, records under the old key no longer count, even if watching the new key fails.
  CHECK_FALSE(nodes.follow(ClientId(0), second.public_key()));
  publish(first, 2);
  CHECK(told == 1);
  publish(second, 3);
  REQUIRE(nodes.follow(ClientId(0), second.public_key()));
  CHECK(told == 2);
}

TEST_CASE("node records: a message that says another round or sequence than its record is refused") {
  int told = 0;
  NodeRecords nodes({.clients = 1, .every = seconds(10)}, [&](ClientId, const NodeRecord&) { ++told; });
  protocol::PublishRecord replayed = message({.round = 3, .sequence = 5});
  replayed.sequence = 6;
  const auto refused = nodes.received(ClientId(0), replayed, Time(seconds(1)));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalid);
  CHECK(refused.error().message ==
        "node record: it has round 3, sequence 5, but its message has round 3, sequence 6");
  replayed = message({.round = 3, .sequence = 5});
  replayed.round = RoundNumber(4);
  CHECK_FALSE(nodes.received(ClientId(0), replayed, Time(seconds(1))));
  CHECK(told == 0);
  CHECK(nodes.received(ClientId(0), message({.round = 3, .sequence = 5}), Time(seconds(1))));
}

TEST_CASE(
    "node records: from a directory, what lies under a client's key is the client's, and nothing else is") {
  dht::MemoryDirectory directory;
  std::vector<std::pair<ClientId, NodeRecord>> told;
  NodeRecords nodes({.run = RunId(7), .clients = 2, .every = seconds(10), .directory = &directory},
                    [&](ClientId client, const NodeRecord& record) { told.emplace_back(client, record); });
  const auto publish = [&](const SecretKey& key, RunId run, std::uint64_t sequence) {
    const auto record = dht::make_record(key, {sequence, Time(seconds(60))},
                                         dht::NodeStatus{run, {.round = 3, .latency_ms = 5.0, .labels = {}}});
    REQUIRE(record);
    directory.publish(*record, [](const Result<void>& kept) { REQUIRE(kept); });
  };
  const SecretKey first = SecretKey::generate(), second = SecretKey::generate();
  publish(first, RunId(7), 1);
  REQUIRE(nodes.follow(ClientId(1), first.public_key()));
  REQUIRE(nodes.follow(ClientId(1), first.public_key()));
  CHECK(nodes.follow(ClientId(2), second.public_key()).error().code == ErrorCode::kInvalid);
  publish(first, RunId(8), 2);
  publish(second, RunId(7), 3);
  publish(first, RunId(7), 4);
  REQUIRE(told.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(told[i].first == ClientId(1));
    CHECK(told[i].second.sequence == (i == 0 ? 1 : 4));
    CHECK(told[i].second.latency_ms == 5.0);
  }
  // The link then accepts no records. A client whose key changes is followed under the new key.
  CHECK(nodes.received(ClientId(1), message({}), Time(seconds(1))).error().code == ErrorCode::kUnsupported);
  REQUIRE(nodes.follow(ClientId(1), second.public_key()));
  publish(first, RunId(7), 5);
  REQUIRE(told.size() == 3);
  CHECK(told[2].second.sequence == 3);
}

}  // namespace fedge::server
