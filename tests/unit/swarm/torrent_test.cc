#include "swarm/peer/torrent.h"

#include <doctest/doctest.h>

#include "core/rng.h"
#include "tests/unit/swarm/virtual_swarm.h"

namespace fedge::swarm {
namespace {

constexpr std::size_t kTorrentChunks = 12;
constexpr std::uint32_t kTorrentChunkSize = 100;

Torrent torrent_of(const ChunkSet& held, const ChunkSet& wanted) {
  auto manifest = manifest_of(kTorrentChunks, kTorrentChunkSize);
  manifest.payload_size -= 40;  // the last chunk is shorter
  return {manifest.id(), manifest, held, wanted};
}

Torrent empty_torrent() { return torrent_of(ChunkSet(kTorrentChunks), ChunkSet::full(kTorrentChunks)); }

// Counts again what the torrent keeps up to date, from the shares alone.
void check_sums(const Torrent& torrent, const std::map<ClientId, Neighbour>& neighbours) {
  std::map<std::uint32_t, std::set<ClientId>> asked;
  std::map<std::uint32_t, std::size_t> offered;
  std::vector<std::uint16_t> copies(kTorrentChunks);
  for (const auto& [peer, neighbour] : neighbours) {
    std::size_t requests = 0;
    std::size_t bytes = 0;
    if (const auto share = torrent.shares.find(peer); share != torrent.shares.end()) {
      share->second.has.for_each([&](std::size_t chunk) { ++copies[chunk]; });
      for (const auto& [chunk, since] : share->second.offers) ++offered[chunk];
      for (const auto& [chunk, since] : share->second.asked) asked[chunk].insert(peer);
      requests = share->second.asked.size() + share->second.cancelled.size();
      for (const auto& [chunk, since] : share->second.asked) bytes += torrent.length(chunk);
      for (const std::uint32_t chunk : share->second.cancelled) bytes += torrent.length(chunk);
    }
    CHECK(neighbour.asked == requests);
    CHECK(neighbour.asked_bytes == bytes);
  }
  CHECK(torrent.copies == copies);
  CHECK(torrent.asked == asked);
  CHECK(torrent.offered == offered);
  std::size_t lacking = 0;
  for (std::uint32_t chunk = 0; chunk < kTorrentChunks; ++chunk) {
    const bool lacks = torrent.wanted.has(chunk) && !torrent.held.has(chunk);
    lacking += lacks ? 1U : 0U;
    CHECK(torrent.missing.has(chunk) == (lacks && !asked.contains(chunk)));
  }
  CHECK(torrent.lacking == lacking);
}

struct TorrentScene {
  Torrent torrent = empty_torrent();
  std::map<ClientId, Neighbour> neighbours;
  Rng rng;

  explicit TorrentScene(std::uint64_t seed) : rng(seed) {
    for (std::uint32_t chunk = 0; chunk < kTorrentChunks; ++chunk)
      if (rng.below(4) == 0) torrent.wanted.remove(chunk);
    torrent = torrent_of(ChunkSet(kTorrentChunks), torrent.wanted);
    torrent.seeding = Seeding{.copies = 2};
  }
  std::uint32_t any_chunk() { return static_cast<std::uint32_t>(rng.below(kTorrentChunks)); }

  void act(ClientId peer) {
    Neighbour& neighbour = neighbours[peer];
    const auto found = torrent.shares.find(peer);
    if (found == torrent.shares.end()) {
      torrent.begin_share(peer, {}).heard = true;
      return;
    }
    Share& share = found->second;
    const std::uint32_t chunk = any_chunk();
    switch (rng.below(9)) {
      case 0:
        return torrent.end_share(peer, neighbour);
      case 1:
        return torrent.announced(share, chunk, {});
      case 2: {
        ChunkSet has(kTorrentChunks);
        for (int i = 0; i < 6; ++i) has.add(any_chunk());
        return torrent.announced(share, has, {});
      }
      case 3:
        return torrent.lost(share, chunk);
      case 4:
      case 5:
        if (const auto rarest = torrent.rarest(share)) torrent.request(peer, neighbour, *rarest, {});
        return;
      case 6:
        if (share.asked.empty()) return;
        CHECK(torrent.end_request(peer, neighbour, share.asked.begin()->first));
        return;
      case 7:
        torrent.end_request(peer, neighbour, chunk);
        if (!torrent.held.has(chunk)) torrent.store(chunk);
        return;
      default:
        torrent.offer(share, {});
        return torrent.withdraw_late(share, rng.below(2) == 0 ? Duration::zero() : seconds(1), {});
    }
  }
};

}  // namespace

TEST_CASE("torrent: its sums are those of its shares, whatever the neighbours do") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    TorrentScene scene(seed);
    for (int i = 0; i < 100; ++i) {
      CAPTURE(i);
      scene.act(ClientId(static_cast<std::uint32_t>(scene.rng.below(4))));
      check_sums(scene.torrent, scene.neighbours);
    }
  }
}

TEST_CASE("torrent: a chunk from one neighbour cancels the requests to the others, and they still count") {
  Torrent torrent = empty_torrent();
  std::map<ClientId, Neighbour> neighbours;
  for (const ClientId peer : {ClientId(1), ClientId(2)}) {
    torrent.begin_share(peer, {});
    torrent.request(peer, neighbours[peer], 3, {});
  }
  CHECK(torrent.end_request(ClientId(1), neighbours[ClientId(1)], 3));
  CHECK(torrent.store(3) == std::set{ClientId(2)});
  CHECK(neighbours[ClientId(1)].asked_bytes == 0);
  CHECK(neighbours[ClientId(2)].asked_bytes == kTorrentChunkSize);
  CHECK_FALSE(torrent.end_request(ClientId(2), neighbours[ClientId(2)], 3));
  CHECK(neighbours[ClientId(2)].asked_bytes == 0);
}

TEST_CASE("torrent: a seeder offers at most 4 chunks at a time, and again only within its copies") {
  Torrent torrent = torrent_of(ChunkSet::full(kTorrentChunks), ChunkSet::full(kTorrentChunks));
  torrent.seeding = Seeding{.copies = 1};
  Share& first = torrent.begin_share(ClientId(1), {});
  Share& second = torrent.begin_share(ClientId(2), {});
  CHECK(torrent.offer(first, {}) == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(torrent.offer(first, {}).empty());
  torrent.sent = torrent.size;                                                 // the allowance is used up
  CHECK(torrent.offer(second, {}) == std::vector<std::uint32_t>{4, 5, 6, 7});  // these have no copy yet
  torrent.announced(second, ChunkSet::full(kTorrentChunks), {});
  CHECK(torrent.offered == std::map<std::uint32_t, std::size_t>{{0, 1}, {1, 1}, {2, 1}, {3, 1}});
  torrent.withdraw_late(first, seconds(5), Time(seconds(5)));
  CHECK(torrent.offered.empty());
  CHECK(torrent.offer(first, {}).empty());
  first.starved = true;
  CHECK(torrent.offer(first, {}).size() == 4);
}

TEST_CASE("torrent: a neighbour that has forgotten what it was shown is offered everything again") {
  Torrent torrent = torrent_of(ChunkSet::full(kTorrentChunks), ChunkSet::full(kTorrentChunks));
  torrent.seeding = Seeding{.copies = 9};
  const ClientId peer(1);
  std::map<ClientId, Neighbour> neighbours;
  neighbours[peer];
  Share& share = torrent.begin_share(peer, Time());
  const std::vector<std::uint32_t> first = torrent.offer(share, Time());
  share.given.add(first[0]);
  share.refusals = 3;
  CHECK(torrent.offer(share, Time()).empty());  // it has enough on offer
  torrent.forget_sent(share, Time());
  check_sums(torrent, neighbours);
  CHECK(share.given.empty());
  CHECK(share.shown.empty());
  CHECK(share.refusals == 0);
  CHECK(torrent.offer(share, Time()) == first);
}

}  // namespace fedge::swarm
