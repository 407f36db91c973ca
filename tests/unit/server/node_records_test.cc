#include "server/directory/node_records.h"

#include <doctest/doctest.h>

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
  // When it has expired, an earlier one is as good as any: its client has begun anew.
  CHECK(nodes.received(ClientId(2), message(first), Time(seconds(60))));
}

TEST_CASE("node records: bytes that are no record, and clients that are none of the run's, change nothing") {
  int told = 0;
  NodeRecords nodes({.clients = 2, .every = seconds(10)}, [&](ClientId, const NodeRecord&) { ++told; });
  const protocol::PublishRecord garbage{RunId(1), RoundNumber(1), 1,
                                        std::vector<std::byte>(40, std::byte{9})};
  CHECK(nodes.received(ClientId(0), garbage, Time(seconds(1))).error().code == ErrorCode::kInvalid);
  // They take no room either: each client of the run has its place.
  for (const std::uint32_t stranger : {2U, 7U, 8U}) {
    const auto refused = nodes.received(ClientId(stranger), message({}), Time(seconds(1)));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kInvalid);
  }
  REQUIRE(nodes.received(ClientId(0), message({}), Time(seconds(1))));
  REQUIRE(nodes.received(ClientId(1), message({}), Time(seconds(1))));
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
        "node record: it is of round 3, sequence 5, its message of round 3, sequence 6");
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
  // Over the connection nothing is taken then; and a client that has another key now is followed under it.
  CHECK(nodes.received(ClientId(1), message({}), Time(seconds(1))).error().code == ErrorCode::kUnsupported);
  REQUIRE(nodes.follow(ClientId(1), second.public_key()));
  publish(first, RunId(7), 5);
  REQUIRE(told.size() == 3);
  CHECK(told[2].second.sequence == 3);
}

}  // namespace fedge::server
