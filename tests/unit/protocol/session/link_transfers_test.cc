// LinkTransfers: who is told about which chunk. tests/unit/protocol/transfer_test.cc tests the transfers.
#include "protocol/session/detail/link_transfers.h"

#include <doctest/doctest.h>

#include <cstring>

namespace fedge::protocol {
namespace {

constexpr std::uint32_t kShortChunk = 4096;

struct TransferEnd final : ChunkSource, ChunkSink {
  explicit TransferEnd(std::size_t chunks, bool complete = false)
      : bytes(chunks * kShortChunk), held(complete) {
    manifest = make_manifest({}, Coverage::all(bytes.size() / 4), bytes, kShortChunk);
  }
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    std::memcpy(out.data(), bytes.data() + chunk * kShortChunk + from, out.size());
    return {};
  }
  bool has(std::size_t) const override { return held; }
  Result<void> write(std::size_t, std::span<const std::byte>) override { return {}; }

  std::vector<std::byte> bytes;
  bool held;
  Manifest manifest;
};

struct TransferScene {
  std::shared_ptr<TransferEnd> end = std::make_shared<TransferEnd>(3);
  const ObjectId id = end->manifest.id();
  LinkTransfers transfers;
  std::vector<std::string> log;

  std::shared_ptr<LinkTransfers::Done> done(const std::string& name) {
    return std::make_shared<LinkTransfers::Done>([this, name](const Result<void>& outcome) {
      log.push_back(name + ": " + (outcome ? "ok" : outcome.error().message));
    });
  }
  ExchangeCallbacks callbacks() {
    return {
        .on_requested =
            [this](const ChunkRequest& r) { log.push_back("requested " + std::to_string(r.first)); },
        .on_chunk =
            [this](const Chunk& chunk, const Result<void>& stored) {
              log.push_back((stored ? "chunk " : "bad ") + std::to_string(chunk.index));
            },
        .on_refused = [this](const ChunkRefused& r) { log.push_back("refused " + std::to_string(r.first)); }};
  }
  // Receives the chunk with these bytes as a link does.
  void receive(std::uint32_t index, std::span<const std::byte> bytes) {
    REQUIRE(transfers.expect({id, index}, bytes.size()));
    if (const auto finished = transfers.receive(bytes)) transfers.report(*finished);
  }
};

}  // namespace

TEST_CASE("link transfers: a fetch is reported once, with its last chunk") {
  TransferScene scene;
  REQUIRE_FALSE(*scene.transfers.fetch(scene.end->manifest, scene.end, scene.done("a")));
  while (scene.transfers.next_request()) {
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    CHECK(scene.log.empty());
    scene.receive(i, std::span(scene.end->bytes).subspan(i * kShortChunk, kShortChunk));
  }
  CHECK(scene.log == std::vector<std::string>{"a: ok"});
  CHECK_FALSE(scene.transfers.has_fetches());
}

TEST_CASE("link transfers: a complete fetch that is cancelled and begun again is reported to the later one") {
  TransferScene scene;
  scene.end->held = true;
  const auto first = *scene.transfers.fetch(scene.end->manifest, scene.end, scene.done("first"));
  scene.transfers.cancel_fetch(scene.id);
  const auto second = *scene.transfers.fetch(scene.end->manifest, scene.end, scene.done("second"));
  first();
  CHECK(scene.log.empty());
  second();
  second();
  CHECK(scene.log == std::vector<std::string>{"second: ok"});
}

TEST_CASE("link transfers: every fetch fails with the link, and nothing is reported afterwards") {
  TransferScene scene;
  const auto other = std::make_shared<TransferEnd>(2);
  REQUIRE(scene.transfers.fetch(scene.end->manifest, scene.end, scene.done("a")));
  REQUIRE(scene.transfers.fetch(other->manifest, other, scene.done("b")));
  CHECK_FALSE(scene.transfers.fetch(other->manifest, other, scene.done("c")));  // fetched already
  scene.transfers.end();
  CHECK_FALSE(scene.transfers.next_request());
  CHECK(scene.transfers.has_fetches());
  scene.transfers.fail_fetches({ErrorCode::kUnavailable, "gone"});
  std::sort(scene.log.begin(), scene.log.end());
  CHECK(scene.log == std::vector<std::string>{"a: gone", "b: gone"});
  CHECK_FALSE(scene.transfers.has_fetches());
}

TEST_CASE("link transfers: an exchange hears of each chunk, request and refusal until it ends") {
  TransferScene scene;
  REQUIRE(scene.transfers.exchange(scene.end->manifest, scene.end, scene.end, scene.callbacks()));
  const Chunk chunk{scene.id, 1};
  CHECK(scene.transfers.pick(chunk) == ChunkRequest{scene.id, 1, 1});
  scene.receive(1, std::span(scene.end->bytes).first(kShortChunk));
  REQUIRE(scene.transfers.pick(chunk));
  const ChunkRefused refused{scene.id, 1, 1, {ErrorCode::kNotFound, "no"}};
  const auto finished = scene.transfers.refused(refused);
  REQUIRE(finished);
  REQUIRE(*finished);
  scene.transfers.report(**finished, refused);
  const auto answer = scene.transfers.requested({scene.id, 2, 1});
  REQUIRE(answer);
  CHECK_FALSE(*answer);
  CHECK(scene.log == std::vector<std::string>{"chunk 1", "refused 1", "requested 2"});

  REQUIRE(scene.transfers.pick(chunk));
  CHECK(scene.transfers.end_exchange(scene.id));
  CHECK_FALSE(scene.transfers.end_exchange(scene.id));
  CHECK_FALSE(scene.transfers.pick({scene.id, 0}));
  scene.receive(1, std::span(scene.end->bytes).first(kShortChunk));  // was in flight
  CHECK(scene.log.size() == 3);
}

TEST_CASE("link transfers: a chunk is not expected with another length, or without a request") {
  TransferScene scene;
  CHECK(scene.transfers.expect({scene.id, 0}, kShortChunk).error().code == ErrorCode::kInvalid);
  REQUIRE(scene.transfers.fetch(scene.end->manifest, scene.end, scene.done("a")));
  while (scene.transfers.next_request()) {
  }
  CHECK(scene.transfers.expect({scene.id, 0}, kShortChunk));
  CHECK(scene.transfers.expect({scene.id, 0}, kShortChunk - 1).error().code == ErrorCode::kInvalid);
}

}  // namespace fedge::protocol
