// Two links that exchange chunks one by one, as peers of a swarm do.
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "protocol/limits.h"
#include "tests/unit/protocol/link_fixture.h"

namespace fedge::protocol {
namespace {

constexpr std::size_t kChunk = (256 << 10) / sizeof(float);  // parameters

// One end of an object's exchange, and everything it has received.
struct Side {
  Side(const Payload& payload, bool has) : store(make_memory_chunk_store(64 << 20)) {
    object = has ? payload.store_in(*store) : *store->create(payload.manifest);
  }
  Result<void> begin(Link& link, std::shared_ptr<ChunkSource> source = nullptr) {
    return link.exchange(
        object->manifest(), source ? source : object, object,
        {.on_requested = [this](const ChunkRequest& request) { requests.push_back(request); },
         .on_chunk =
             [this](const Chunk& chunk, const Result<void>& outcome) {
               chunks.emplace_back(chunk.index, outcome ? std::nullopt : std::optional(outcome.error().code));
             },
         .on_refused = [this](const ChunkRefused& refused) { refusals.push_back(refused); }});
  }
  std::unique_ptr<ChunkStore> store;
  std::shared_ptr<StoredObject> object;
  std::vector<ChunkRequest> requests;
  std::vector<std::pair<std::uint32_t, std::optional<ErrorCode>>> chunks;
  std::vector<ChunkRefused> refusals;
};

struct Exchanging {
  explicit Exchanging(std::size_t bytes) : payload(bytes), one(payload, true), other(payload, false) {
    net.join();
    REQUIRE(one.begin(*net.server.link));
    REQUIRE(other.begin(*net.client.link));
  }
  Chunk chunk(std::uint32_t index) const { return {payload.manifest.id(), index}; }
  Loopback net;
  Payload payload;
  Side one;
  Side other;
};

}  // namespace

TEST_CASE("link exchange: a chunk comes when it was asked for and its owner sends it, both ways at once") {
  Exchanging e(8 * kChunk);
  REQUIRE(e.net.client.link->ask(e.chunk(3)));
  REQUIRE(e.net.client.link->ask(e.chunk(1)));
  REQUIRE(e.net.run_until([&] { return e.one.requests.size() == 2; }));
  CHECK(e.one.requests[0] == ChunkRequest{e.payload.manifest.id(), 3, 1});
  CHECK(e.other.chunks.empty());
  // Chunks arrive in the order in which they are sent, not requested.
  CHECK(e.net.server.link->send_chunk(e.chunk(1)));
  CHECK(e.net.server.link->send_chunk(e.chunk(3)));
  REQUIRE(e.net.run_until([&] { return e.other.chunks.size() == 2; }));
  CHECK(e.other.chunks[0] == std::pair(1U, std::optional<ErrorCode>()));
  CHECK(e.other.chunks[1] == std::pair(3U, std::optional<ErrorCode>()));
  CHECK(e.other.object->has(3));
  CHECK_FALSE(e.other.object->has(2));
  REQUIRE(e.net.server.link->ask(e.chunk(3)));
  REQUIRE(e.net.run_until([&] { return !e.other.requests.empty(); }));
  CHECK(e.net.client.link->send_chunk(e.chunk(3)));
  REQUIRE(e.net.run_until([&] { return !e.one.chunks.empty(); }));
}

TEST_CASE("link exchange: nothing is sent or refused that was not asked for, nor twice") {
  Exchanging e(8 * kChunk);
  CHECK_FALSE(e.net.server.link->send_chunk(e.chunk(0)));
  CHECK_FALSE(e.net.server.link->refuse_chunk(e.chunk(0), {ErrorCode::kStale, "no"}));
  REQUIRE(e.net.client.link->ask(e.chunk(0)));
  CHECK_FALSE(e.net.client.link->ask(e.chunk(0)));
  REQUIRE(e.net.run_until([&] { return e.one.requests.size() == 1; }));
  CHECK(e.net.server.link->refuse_chunk(e.chunk(0), {ErrorCode::kUnavailable, "later"}));
  CHECK_FALSE(e.net.server.link->send_chunk(e.chunk(0)));
  REQUIRE(e.net.run_until([&] { return e.other.refusals.size() == 1; }));
  CHECK(e.other.refusals[0].error.code == ErrorCode::kUnavailable);
  CHECK(e.other.refusals[0].error.message == "later");
  // The refused chunk may be requested again.
  REQUIRE(e.net.client.link->ask(e.chunk(0)));
  REQUIRE(e.net.run_until([&] { return e.one.requests.size() == 2; }));
  CHECK(e.net.server.link->send_chunk(e.chunk(0)));
  REQUIRE(e.net.run_until([&] { return e.other.chunks.size() == 1; }));
}

TEST_CASE("link exchange: no more is asked for than the credit, which what arrives gives back") {
  Exchanging e(16 * kChunk);
  std::uint32_t asked = 0;
  while (asked < 16 && e.net.client.link->ask(e.chunk(asked))) ++asked;
  CHECK(asked == kFetchWindow / (256 << 10));
  REQUIRE(e.net.run_until([&] { return e.one.requests.size() == asked; }));
  CHECK(e.net.server.link->send_chunk(e.chunk(0)));
  REQUIRE(e.net.run_until([&] { return !e.other.chunks.empty(); }));
  CHECK(e.net.client.link->ask(e.chunk(asked)));
  CHECK_FALSE(e.net.client.link->ask(e.chunk(asked + 1)));
}

TEST_CASE("link exchange: wrong bytes are told as such and not kept, and the link goes on") {
  Loopback net;
  net.join();
  const Payload payload(4 * kChunk);
  Side one(payload, true);
  Side other(payload, false);
  REQUIRE(one.begin(*net.server.link, std::make_shared<FalseSource>(2, one.object)));
  REQUIRE(other.begin(*net.client.link));
  for (const std::uint32_t index : {2U, 3U}) REQUIRE(net.client.link->ask({payload.manifest.id(), index}));
  REQUIRE(net.run_until([&] { return one.requests.size() == 2; }));
  for (const std::uint32_t index : {2U, 3U})
    CHECK(net.server.link->send_chunk({payload.manifest.id(), index}));
  REQUIRE(net.run_until([&] { return other.chunks.size() == 2; }));
  CHECK(other.chunks[0] == std::pair(2U, std::optional(ErrorCode::kCorrupt)));
  CHECK(other.chunks[1] == std::pair(3U, std::optional<ErrorCode>()));
  CHECK_FALSE(other.object->has(2));
  CHECK_FALSE(net.client.closed);
}

TEST_CASE("link exchange: what is not exchanged is refused by the link itself") {
  Loopback net;
  net.join();
  const Payload payload(4 * kChunk);
  Side other(payload, false);
  REQUIRE(other.begin(*net.client.link));
  REQUIRE(net.client.link->ask({payload.manifest.id(), 0}));
  REQUIRE(net.run_until([&] { return other.refusals.size() == 1; }));
  CHECK(other.refusals[0].error.code == ErrorCode::kNotFound);
}

TEST_CASE(
    "link exchange: after its end those who wait are refused, and what is under way is heard of by nobody") {
  Exchanging e(8 * kChunk);
  for (std::uint32_t i = 0; i < 4; ++i) REQUIRE(e.net.client.link->ask(e.chunk(i)));
  REQUIRE(e.net.run_until([&] { return e.one.requests.size() == 4; }));
  SUBCASE("the sender's") {
    CHECK(e.net.server.link->send_chunk(e.chunk(0)));
    e.net.server.link->end_exchange(e.payload.manifest.id());
    REQUIRE(e.net.run_until([&] { return e.other.refusals.size() + e.other.chunks.size() == 4; }));
    CHECK(e.other.refusals.size() >= 3);
    CHECK_FALSE(e.net.server.link->send_chunk(e.chunk(1)));
  }
  SUBCASE("the receiver's") {
    e.net.client.link->end_exchange(e.payload.manifest.id());
    for (std::uint32_t i = 0; i < 4; ++i) CHECK(e.net.server.link->send_chunk(e.chunk(i)));
    e.net.client.link->send(Hello{});
    REQUIRE(e.net.run_until([&] { return !e.net.server.messages.empty(); }));
    CHECK(e.other.chunks.empty());
    CHECK_FALSE(e.net.client.closed);
    // After a new start, the same chunks can be requested once the old ones have arrived.
    REQUIRE(e.other.begin(*e.net.client.link));
    bool asked = false;
    REQUIRE(e.net.run_until([&] { return asked = asked || e.net.client.link->ask(e.chunk(0)); }));
  }
}

TEST_CASE("link exchange: an object that is being fetched is not exchanged as well") {
  Loopback net;
  net.join();
  const Payload payload(4 * kChunk);
  Fetch fetch(payload.manifest);
  fetch.start(*net.client.link);
  Side other(payload, false);
  const auto begun = other.begin(*net.client.link);
  REQUIRE_FALSE(begun);
  CHECK(begun.error().code == ErrorCode::kInvalid);
}

TEST_CASE("link exchange: a fetch and an exchange share a link and its credit") {
  Exchanging e(8 * kChunk);
  const Payload model(20 * kChunk);
  auto source = make_memory_chunk_store(64 << 20);
  e.net.server.link->serve(model.manifest, model.store_in(*source));
  Fetch fetch(model.manifest);
  fetch.start(*e.net.client.link);
  std::uint32_t asked = 0;
  // Request chunks whenever the link has credit; send what is requested.
  REQUIRE(e.net.run_until([&] {
    while (asked < 8 && e.net.client.link->ask(e.chunk(asked))) ++asked;
    for (const auto& request : std::exchange(e.one.requests, {}))
      CHECK(e.net.server.link->send_chunk(e.chunk(request.first)));
    return fetch.outcome && e.other.chunks.size() == 8;
  }));
  CHECK(*fetch.outcome);
  CHECK(e.payload.same_as(*e.other.object));
}

}  // namespace fedge::protocol
