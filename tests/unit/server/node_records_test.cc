#include "server/node_directory.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "dht/node_record.h"

namespace fedge::server {
namespace {

protocol::PublishRecord message(const NodeRecord& record) {
  const auto value = dht::encode_node_record(record);
  REQUIRE(value);
  return {RunId(1), RoundNumber(record.round), record.sequence, *value};
}

}  // namespace

TEST_CASE("node directory: what a client publishes is told on under its own number, the latest alone") {
  std::vector<std::pair<ClientId, NodeRecord>> told;
  auto nodes = NodeDirectory::open(
      3, seconds(30), [&](ClientId client, const NodeRecord& record) { told.emplace_back(client, record); });
  REQUIRE(nodes);
  const NodeRecord first{.round = 1, .sequence = 7, .latency_ms = 12, .labels = {1, 0}};
  const NodeRecord second{.round = 2, .sequence = 1, .latency_ms = 15, .labels = {}};
  REQUIRE(nodes->publish(ClientId(2), message(first), Time(seconds(1))));
  REQUIRE(nodes->publish(ClientId(2), message(second), Time(seconds(2))));
  CHECK(nodes->publish(ClientId(2), message(first), Time(seconds(3))).error().code == ErrorCode::kStale);
  REQUIRE(told.size() == 2);
  CHECK(told[0] == std::pair(ClientId(2), first));
  CHECK(told[1] == std::pair(ClientId(2), second));
  // When it has expired, an earlier one is as good as any: its client has begun anew.
  CHECK(nodes->publish(ClientId(2), message(first), Time(seconds(60))));
}

TEST_CASE(
    "node directory: bytes that are no record, and clients that are none of the run's, change nothing") {
  int told = 0;
  auto nodes = NodeDirectory::open(2, seconds(30), [&](ClientId, const NodeRecord&) { ++told; });
  REQUIRE(nodes);
  const protocol::PublishRecord garbage{RunId(1), RoundNumber(1), 1,
                                        std::vector<std::byte>(40, std::byte{9})};
  CHECK(nodes->publish(ClientId(0), garbage, Time(seconds(1))).error().code == ErrorCode::kUnsupported);
  // They take no room either: each client of the run has its place.
  for (const std::uint32_t stranger : {2U, 7U, 8U}) {
    const auto refused = nodes->publish(ClientId(stranger), message({}), Time(seconds(1)));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kInvalid);
  }
  REQUIRE(nodes->publish(ClientId(0), message({}), Time(seconds(1))));
  REQUIRE(nodes->publish(ClientId(1), message({}), Time(seconds(1))));
  CHECK(told == 2);
}

TEST_CASE("node directory: a message that says another round or sequence than its record is refused") {
  int told = 0;
  auto nodes = NodeDirectory::open(1, seconds(30), [&](ClientId, const NodeRecord&) { ++told; });
  REQUIRE(nodes);
  protocol::PublishRecord replayed = message({.round = 3, .sequence = 5});
  replayed.sequence = 6;
  const auto refused = nodes->publish(ClientId(0), replayed, Time(seconds(1)));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalid);
  CHECK(refused.error().message ==
        "node record: it is of round 3, sequence 5, its message of round 3, sequence 6");
  replayed = message({.round = 3, .sequence = 5});
  replayed.round = RoundNumber(4);
  CHECK_FALSE(nodes->publish(ClientId(0), replayed, Time(seconds(1))));
  CHECK(told == 0);
  CHECK(nodes->publish(ClientId(0), message({.round = 3, .sequence = 5}), Time(seconds(1))));
}

}  // namespace fedge::server
