#include "swarm/exchange.h"

#include <doctest/doctest.h>

#include "protocol/chunks/chunk_store.h"

namespace fedge::swarm {

TEST_CASE("exchange: a complete object that is opened again stays open, so that no neighbour hears of it") {
  const std::vector<std::byte> bytes(10'000, std::byte{7});
  const protocol::Manifest manifest = protocol::make_manifest({}, Coverage::all(2500), bytes, 4096);
  const auto store = protocol::make_memory_chunk_store(1 << 20);
  const auto other_store = protocol::make_memory_chunk_store(1 << 20);
  const auto stored = store->create(manifest);
  const auto elsewhere = other_store->create(manifest);
  REQUIRE((stored && elsewhere));
  const auto fill = [&](protocol::StoredObject& object, std::size_t chunks) {
    for (std::size_t i = 0; i < chunks; ++i)
      REQUIRE(object.write(i, std::span(bytes).subspan(i * 4096, manifest.chunk_length(i))));
  };
  const auto exchange =
      std::make_shared<Exchange>(PeerRules{}, 1,
                                 Exchange::Owner{.now = [] { return Time(); },
                                                 .arm = [](std::optional<Time>) {},
                                                 .on_dropped = [](ClientId, const std::string&) {}});
  int completed = 0;
  const auto open = [&](const std::shared_ptr<protocol::StoredObject>& object) {
    exchange->open(
        {.manifest = manifest, .source = object, .sink = object, .wanted = ChunkSet::full(3), .seeding = {}},
        [&](const Result<void>& done) { completed += done ? 1 : 0; });
  };
  const ClientId member(5);
  const auto has_member = [&] { return exchange->peer().torrent(manifest.id())->members.contains(member); };

  fill(**stored, 2);
  open(*stored);
  exchange->admit(manifest.id(), member);
  CHECK(completed == 0);
  fill(**stored, 3);
  open(*stored);  // it was not complete
  CHECK(completed == 1);
  CHECK_FALSE(has_member());
  exchange->admit(manifest.id(), member);
  open(*stored);
  CHECK(completed == 2);
  CHECK(has_member());
  fill(**elsewhere, 3);
  open(*elsewhere);
  CHECK(completed == 3);
  CHECK_FALSE(has_member());
}

}  // namespace fedge::swarm
