#include "swarm/peer/peer.h"

#include <doctest/doctest.h>

#include "tests/unit/swarm/virtual_swarm.h"

namespace fedge::swarm {

static_assert(fedge::Node<Peer>);

namespace {

constexpr std::uint64_t kLine = 2'500'000;  // 20 Mbit/s

PeerRules limited(std::uint64_t bytes_per_second = kLine) {
  PeerRules rules;
  rules.upload_limit = bytes_per_second;
  return rules;
}

double copies_sent(const VirtualSwarm& swarm, const protocol::Manifest& manifest,
                   ClientId who = kCoordinator) {
  return static_cast<double>(swarm.peer(who).figures().sent) / static_cast<double>(manifest.payload_size);
}

}  // namespace

TEST_CASE(
    "peer: one seeder and fifteen others with equal lines need little longer than the seeder's own line") {
  VirtualSwarm swarm;
  const auto manifest = manifest_of(256);
  swarm.add(kCoordinator, limited());
  for (std::uint32_t i = 0; i < 15; ++i) swarm.add(ClientId(i), limited());
  swarm.share(manifest);
  swarm.link_all();
  REQUIRE(swarm.run([&] { return swarm.everybody_has(manifest.id()); }, 300));
  const double bound = static_cast<double>(manifest.payload_size) / kLine;
  const double time = swarm.last(manifest.id());
  CHECK(time >= bound);
  CHECK(time <= 1.1 * bound);
  CHECK(copies_sent(swarm, manifest) <= 1.2);
  // Chunks that arrived twice were requested twice at the end.
  CHECK(swarm.received_twice() <= manifest.payload_size / 10);
}

TEST_CASE(
    "peer: who is linked to the coordinator alone gets everything from it, after the time that this takes") {
  VirtualSwarm swarm;
  const auto manifest = manifest_of(64);
  swarm.add(kCoordinator, limited());
  for (std::uint32_t i = 0; i < 4; ++i) {
    swarm.add(ClientId(i), limited());
    swarm.links.link(ClientId(i), kCoordinator);
  }
  swarm.share(manifest, kCoordinator, {.copies = 1});
  REQUIRE(swarm.run([&] { return swarm.everybody_has(manifest.id()); }, 300));
  CHECK(copies_sent(swarm, manifest) == doctest::Approx(4));
  const double bound = 4 * static_cast<double>(manifest.payload_size) / kLine;
  CHECK(swarm.last(manifest.id()) <= bound + 6);  // starvation is detected after 5 s, at the next tick
}

TEST_CASE("peer: a few behind a wall still pass on to those who listen, and get from them") {
  VirtualSwarm swarm;
  const auto manifest = manifest_of(512);
  swarm.add(kCoordinator, limited());
  for (std::uint32_t i = 0; i < 12; ++i) swarm.add(ClientId(i), limited());
  swarm.share(manifest);
  // The first six peers accept links, the others only connect.
  for (std::uint32_t a = 0; a < 12; ++a) {
    swarm.links.link(ClientId(a), kCoordinator);
    for (std::uint32_t b = 0; b < 6; ++b)
      if (b < a) swarm.links.link(ClientId(a), ClientId(b));
  }
  REQUIRE(swarm.run([&] { return swarm.everybody_has(manifest.id()); }, 300));
  CHECK(copies_sent(swarm, manifest) <= 2.1);
  // The connecting peers can fetch only from the accepting ones, which use part of their lines among
  // themselves.
  CHECK(swarm.last(manifest.id()) <= 1.4 * static_cast<double>(manifest.payload_size) / kLine);
}

TEST_CASE("peer: of what a neighbour has the rarest chunk is asked for first") {
  constexpr ClientId kHere{0}, kMost{1}, kAll{2};
  constexpr std::size_t kMany = 64;
  for (const std::uint32_t rare : {0U, 3U, 31U, 50U, 63U}) {
    VirtualSwarm swarm;
    const auto manifest = manifest_of(kMany, 256 << 10, static_cast<std::uint8_t>(rare + 1));
    ChunkSet most = ChunkSet::full(kMany);
    most.remove(rare);
    for (const ClientId id : {kHere, kMost, kAll}) swarm.add(id);
    const auto open = [&](ClientId id, const ChunkSet& held) {
      swarm.step(id, Peer::Open{manifest, held, ChunkSet::full(kMany), {}, {}});
    };
    open(kHere, ChunkSet(kMany));
    open(kMost, most);
    open(kAll, ChunkSet::full(kMany));
    for (const ClientId other : {kMost, kAll}) {
      swarm.step(kHere, Peer::Admit{manifest.id(), other});
      swarm.step(other, Peer::Admit{manifest.id(), kHere});
    }
    std::vector<std::uint32_t> asked;  // requests to kAll, which has every chunk
    swarm.instead[kHere] = [&](const Peer::Effect& effect) {
      if (const auto* ask = std::get_if<Peer::Ask>(&effect); ask != nullptr && ask->peer == kAll)
        asked.push_back(ask->chunk.index);
      return false;
    };
    // kHere already knows kMost, which sends nothing.
    swarm.instead[kMost] = [](const Peer::Effect& effect) {
      return std::holds_alternative<Peer::SendChunk>(effect);
    };
    swarm.links.link(kHere, kMost);
    (void)swarm.run([] { return false; }, 0.5);
    swarm.links.link(kHere, kAll);
    (void)swarm.run([&] { return !asked.empty(); }, 5);
    REQUIRE_FALSE(asked.empty());
    CHECK(asked.front() == rare);
  }
}

TEST_CASE("peer: peers that vanish halfway take nothing with them that others cannot get") {
  VirtualSwarm swarm;
  const auto manifest = manifest_of(128);
  swarm.add(kCoordinator, limited());
  for (std::uint32_t i = 0; i < 10; ++i) swarm.add(ClientId(i), limited());
  swarm.share(manifest);
  swarm.link_all();
  REQUIRE_FALSE(swarm.run([&] { return swarm.everybody_has(manifest.id()); }, 7));
  for (std::uint32_t i = 0; i < 3; ++i) swarm.kill(ClientId(i));
  REQUIRE(swarm.run([&] { return swarm.everybody_has(manifest.id()); }, 300));
  // The coordinator seeds the chunks again that only the killed peers had.
  CHECK(copies_sent(swarm, manifest) <= 2.1);
  CHECK(swarm.last(manifest.id()) <= 1.5 * static_cast<double>(manifest.payload_size) / kLine);
}

TEST_CASE("peer: without the coordinator those who have all of it between them complete each other") {
  VirtualSwarm swarm;
  const auto manifest = manifest_of(64);
  for (std::uint32_t i = 0; i < 4; ++i) swarm.add(ClientId(i), limited());
  for (std::uint32_t i = 0; i < 4; ++i) {
    ChunkSet held(64);
    for (std::size_t chunk = i; chunk < 64; chunk += 4) held.add(chunk);
    swarm.step(ClientId(i), Peer::Open{manifest, held, ChunkSet::full(64), std::nullopt});
    for (std::uint32_t other = 0; other < 4; ++other)
      if (other != i) swarm.step(ClientId(i), Peer::Admit{manifest.id(), ClientId(other)});
  }
  swarm.link_all();
  REQUIRE(swarm.run([&] { return swarm.everybody_has(manifest.id()); }, 300));
  for (std::uint32_t i = 0; i < 4; ++i)
    CHECK(swarm.peer(ClientId(i)).figures().received - swarm.peer(ClientId(i)).figures().twice ==
          48 * std::uint64_t{256 << 10});
}

TEST_CASE("peer: only the chunks that are wanted are asked for, and they are all it takes") {
  VirtualSwarm swarm;
  const auto manifest = manifest_of(64);
  swarm.add(kCoordinator);
  swarm.add(ClientId(0));
  ChunkSet wanted(64);
  for (const std::size_t chunk : {3U, 40U, 63U}) wanted.add(chunk);
  swarm.step(ClientId(0), Peer::Open{manifest, ChunkSet(64), wanted, std::nullopt});
  swarm.step(ClientId(0), Peer::Admit{manifest.id(), kCoordinator});
  swarm.step(kCoordinator, Peer::Open{manifest, ChunkSet::full(64), ChunkSet::full(64), std::nullopt});
  swarm.step(kCoordinator, Peer::Admit{manifest.id(), ClientId(0)});
  swarm.link_all();
  REQUIRE(swarm.run([&] { return swarm.completed.contains(ClientId(0)); }, 60));
  CHECK(swarm.peer(ClientId(0)).torrent(manifest.id())->held.bytes() == wanted.bytes());
}

TEST_CASE("peer: chunks that nobody wants do not keep those from anybody who wants others") {
  VirtualSwarm swarm;
  const auto manifest = manifest_of(64);
  swarm.add(kCoordinator);
  for (std::uint32_t i = 0; i < 3; ++i) swarm.add(ClientId(i));
  swarm.share(manifest);
  for (std::uint32_t i = 0; i < 3; ++i) {
    ChunkSet wanted(64);
    for (std::size_t chunk = 0; chunk < 4 * (i + 1); ++chunk) wanted.add(chunk);
    swarm.step(ClientId(i), Peer::Close{manifest.id()});
    swarm.step(ClientId(i), Peer::Open{manifest, ChunkSet(64), wanted, std::nullopt});
    for (const ClientId other : {kCoordinator, ClientId(0), ClientId(1), ClientId(2)})
      if (other != ClientId(i)) swarm.step(ClientId(i), Peer::Admit{manifest.id(), other});
  }
  swarm.link_all();
  REQUIRE(swarm.run([&] { return swarm.everybody_has(manifest.id()); }, 60));
  for (std::uint32_t i = 0; i < 3; ++i)
    CHECK(swarm.peer(ClientId(i)).torrent(manifest.id())->held.count() == 4 * (i + 1));
  // The coordinator sends each of the twelve chunks once or twice: `copies` is 2.
  CHECK(swarm.peer(kCoordinator).figures().sent <= 24 * std::uint64_t{256 << 10});
}

TEST_CASE("peer: who opens an object anew gets what it has lost, from those that sent it before") {
  VirtualSwarm swarm;
  const auto manifest = manifest_of(16);
  ClientId first(0);
  const ClientId forgetful(1);
  SUBCASE("from another peer") {}
  SUBCASE("from a seeder, which has forgotten its offers too") { first = kCoordinator; }
  for (const ClientId client : {first, forgetful}) swarm.add(client);
  swarm.step(first, Peer::Open{manifest, ChunkSet::full(16), ChunkSet::full(16),
                               first == kCoordinator ? std::optional(Seeding{.copies = 9}) : std::nullopt});
  swarm.step(first, Peer::Admit{manifest.id(), forgetful});
  swarm.link_all();
  const auto open = [&](const ChunkSet& held, double seconds) {
    swarm.completed.erase(forgetful);
    swarm.step(forgetful, Peer::Open{manifest, held, ChunkSet::full(16), std::nullopt});
    swarm.step(forgetful, Peer::Admit{manifest.id(), first});
    return swarm.run([&] { return swarm.completed.contains(forgetful); }, swarm.seconds_now() + seconds);
  };
  REQUIRE(open(ChunkSet(16), 20));
  ChunkSet half(16);
  for (std::size_t i = 0; i < 8; ++i) half.add(i);
  for (std::uint64_t times = 1; times <= 5; ++times) {
    swarm.step(forgetful, Peer::Close{manifest.id()});
    REQUIRE(open(half, 8));
    CHECK(swarm.peer(first).figures().sent == manifest.payload_size + times * manifest.payload_size / 2);
  }
  // Chunks that were on their way, or offered, when it closed the object.
  swarm.line[first] = 1 << 20;
  swarm.step(forgetful, Peer::Close{manifest.id()});
  REQUIRE_FALSE(open(half, 0.7));
  swarm.step(forgetful, Peer::Close{manifest.id()});
  CHECK(open(half, 8));
  CHECK(swarm.dropped.empty());
  // But not for ever.
  std::size_t times = 7;
  for (; swarm.dropped.empty() && times < 99; ++times) {
    swarm.step(forgetful, Peer::Close{manifest.id()});
    (void)open(half, 0.5);
  }
  CHECK(times == 8 + 16);
}

TEST_CASE("peer: who ends its exchange is not blamed for the requests that it refuses") {
  VirtualSwarm swarm;
  const ClientId other(0);
  const ClientId moving(1);
  for (const ClientId client : {other, moving}) swarm.add(client);
  swarm.line[moving] = 1 << 20;
  swarm.link_all();
  for (std::uint32_t round = 1; round <= 20; ++round) {
    const auto manifest = manifest_of(64 + round);
    swarm.step(moving,
               Peer::Open{manifest, ChunkSet::full(64 + round), ChunkSet::full(64 + round), std::nullopt});
    swarm.step(other, Peer::Open{manifest, ChunkSet(64 + round), ChunkSet::full(64 + round), std::nullopt});
    swarm.step(moving, Peer::Admit{manifest.id(), other});
    swarm.step(other, Peer::Admit{manifest.id(), moving});
    CHECK_FALSE(swarm.run([] { return false; }, swarm.seconds_now() + 3));
    CHECK(swarm.peer(other).torrent(manifest.id())->held.count() > 2);
    swarm.step(moving, Peer::Close{manifest.id()});
    CHECK_FALSE(swarm.run([] { return false; }, swarm.seconds_now() + 1));
    CHECK(swarm.peer(other).torrent(manifest.id())->asked.empty());  // they can be asked of others
    swarm.step(other, Peer::Close{manifest.id()});
  }
  CHECK(swarm.dropped.empty());
}

TEST_CASE("peer: who is not a member is told of nothing and gets nothing") {
  VirtualSwarm swarm;
  const auto manifest = manifest_of(16);
  for (std::uint32_t i = 0; i < 2; ++i) swarm.add(ClientId(i));
  swarm.step(ClientId(0), Peer::Open{manifest, ChunkSet::full(16), ChunkSet::full(16), std::nullopt});
  swarm.step(ClientId(1), Peer::Open{manifest, ChunkSet(16), ChunkSet::full(16), std::nullopt});
  swarm.step(ClientId(1), Peer::Admit{manifest.id(), ClientId(0)});
  swarm.link_all();
  swarm.step(ClientId(0),
             Peer::Received{ClientId(1), protocol::ChunksHeld{manifest.id(), ChunkSet(16).bytes()}});
  CHECK_FALSE(swarm.run([&] { return swarm.completed.contains(ClientId(1)); }, 30));
  CHECK(swarm.peer(ClientId(0)).figures().sent == 0);
  SUBCASE("let in, it gets it") {
    swarm.step(ClientId(0), Peer::Admit{manifest.id(), ClientId(1)});
    CHECK(swarm.run([&] { return swarm.completed.contains(ClientId(1)); }, 60));
  }
  SUBCASE("dismissed in the middle, it gets no more") {
    PeerRules slow = limited(256 << 10);
    swarm.kill(ClientId(0));
    swarm.add(ClientId(0), slow);
    swarm.step(ClientId(0), Peer::Open{manifest, ChunkSet::full(16), ChunkSet::full(16), std::nullopt});
    swarm.step(ClientId(0), Peer::Admit{manifest.id(), ClientId(1)});
    swarm.link_all();
    CHECK_FALSE(swarm.run([&] { return false; }, swarm.seconds_now() + 4));
    swarm.step(ClientId(0), Peer::Dismiss{manifest.id(), ClientId(1)});
    const std::uint64_t sent = swarm.peer(ClientId(0)).figures().sent;
    CHECK(sent > 0);
    CHECK_FALSE(swarm.run([&] { return swarm.completed.contains(ClientId(1)); }, swarm.seconds_now() + 60));
    CHECK(swarm.peer(ClientId(0)).figures().sent == sent);
  }
}

TEST_CASE("peer: two objects at once share the line, and neither waits for the other") {
  VirtualSwarm swarm;
  const auto one = manifest_of(64, 256 << 10, 1);
  const auto two = manifest_of(64, 256 << 10, 2);
  swarm.add(kCoordinator, limited());
  for (std::uint32_t i = 0; i < 5; ++i) swarm.add(ClientId(i), limited());
  swarm.share(one);
  swarm.share(two);
  swarm.link_all();
  REQUIRE(swarm.run([&] { return swarm.everybody_has(one.id()) && swarm.everybody_has(two.id()); }, 300));
  const double bound = 2 * static_cast<double>(one.payload_size) / kLine;
  CHECK(swarm.last(one.id()) <= 1.25 * bound);
  CHECK(swarm.last(two.id()) <= 1.25 * bound);
}

TEST_CASE("peer: an upload limit holds over every stretch of time, but for what was saved up") {
  VirtualSwarm swarm;
  const auto manifest = manifest_of(64);
  swarm.add(ClientId(0), limited(1 << 20));
  for (std::uint32_t i = 1; i < 4; ++i) swarm.add(ClientId(i));
  swarm.share(manifest, ClientId(0));
  swarm.link_all();
  std::uint64_t most = 0;
  std::uint64_t before = 0;
  for (int second = 1; second < 40; ++second) {
    (void)swarm.run([] { return false; }, second);
    const std::uint64_t sent = swarm.peer(ClientId(0)).figures().sent;
    most = std::max(most, sent - before);
    before = sent;
  }
  CHECK(before > 0);
  CHECK(most <= (1 << 20) + (1 << 20) / 10 + (256 << 10));
}

TEST_CASE("peer: chunks that a closed object leaves unsent do not hold up the next object") {
  VirtualSwarm swarm;
  constexpr ClientId kSource{0};
  constexpr ClientId kTaker{1};
  swarm.add(kSource);
  swarm.add(kTaker);
  swarm.links.link(kSource, kTaker);
  // The line takes nothing: the source never hears that a chunk was sent.
  std::size_t handed_over = 0;
  swarm.instead[kSource] = [&](const Peer::Effect& effect) {
    if (std::holds_alternative<Peer::SendChunk>(effect)) ++handed_over;
    return std::holds_alternative<Peer::SendChunk>(effect);
  };
  for (std::uint8_t name = 1; name <= 3; ++name) {
    const auto manifest = manifest_of(8, 256 << 10, name);
    swarm.share(manifest, kSource);
    const std::size_t before = handed_over;
    (void)swarm.run([] { return false; }, swarm.seconds_now() + 5);
    CHECK_MESSAGE(handed_over > before, "object ", int{name});
    for (const ClientId peer : {kSource, kTaker}) swarm.step(peer, Peer::Close{manifest.id()});
  }
  CHECK(handed_over <= 3 * 4);  // at most 1 MiB waits
}

}  // namespace fedge::swarm
