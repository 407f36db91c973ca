#include "swarm/peer/uploader.h"

#include <doctest/doctest.h>

#include "tests/unit/swarm/virtual_swarm.h"

namespace fedge::swarm {
namespace {

// A book with these neighbours, numbered from 0: all are interested, and the peer chokes them.
PeerBook book_of(const std::vector<std::uint64_t>& received) {
  PeerBook book;
  for (std::size_t i = 0; i < received.size(); ++i) {
    Neighbour& neighbour = book.neighbours[ClientId(static_cast<std::uint32_t>(i))];
    neighbour.interested = true;
    neighbour.received = received[i];
    neighbour.sent = 1000 - received[i];
  }
  return book;
}

// Opens an object of which the peer holds and wants these chunks, and exchanges it with all neighbours.
Torrent& open_for_all(PeerBook& book, const ChunkSet& held) {
  const auto manifest = manifest_of(held.size(), 1000);
  Torrent torrent(manifest.id(), manifest, held, ChunkSet::full(held.size()));
  for (const auto& [peer, neighbour] : book.neighbours) torrent.begin_share(peer, {});
  return book.torrents.emplace(manifest.id(), std::move(torrent)).first->second;
}

std::set<ClientId> served(const PeerBook& book) {
  std::set<ClientId> peers;
  for (const auto& [peer, neighbour] : book.neighbours)
    if (!neighbour.choking) peers.insert(peer);
  return peers;
}

PeerRules with_slots(std::size_t count) {
  PeerRules rules;
  rules.upload_slots = count;
  return rules;
}

}  // namespace

TEST_CASE("uploader: who sent the most is served, and one more, while chunks are missing") {
  PeerBook book = book_of({50, 10, 40, 30, 20});
  open_for_all(book, ChunkSet(4));
  Uploader uploader(with_slots(3));
  const Rng rng(1);
  const auto changed = uploader.choose(book, {.now = Time(seconds(1)), .rng = rng});
  const auto chosen = served(book);
  CHECK(std::set(changed.begin(), changed.end()) == chosen);
  CHECK(chosen.size() == 3);
  CHECK(chosen.contains(ClientId(0)));
  CHECK(chosen.contains(ClientId(2)));
}

TEST_CASE("uploader: who receives the fastest is served once nothing is missing") {
  PeerBook book = book_of({50, 10, 40, 30, 20});
  open_for_all(book, ChunkSet::full(4));
  Uploader uploader(with_slots(3));
  const Rng rng(1);
  uploader.choose(book, {.now = Time(seconds(1)), .rng = rng});
  CHECK(served(book).contains(ClientId(1)));
  CHECK(served(book).contains(ClientId(4)));
}

TEST_CASE("uploader: over many choices everybody interested gets the optimistic slot, and nobody else") {
  PeerBook book = book_of({0, 0, 0, 0, 0, 0});
  book.neighbours[ClientId(2)].interested = false;
  book.neighbours[ClientId(4)].dropped = true;
  Uploader uploader(with_slots(1));
  const Rng rng(3);
  std::set<ClientId> ever;
  for (int i = 0; i < 60; ++i) {
    uploader.choose(book, {.now = Time(seconds(30 * i)), .rng = rng});
    CHECK(served(book).size() == 1);
    ever.merge(served(book));
  }
  CHECK(ever == std::set{ClientId(0), ClientId(1), ClientId(3), ClientId(5)});
}

TEST_CASE("uploader: the optimistic slot stays for its time, and choices are due again after theirs") {
  PeerBook book = book_of({0, 0, 0, 0, 0, 0, 0, 0});
  Uploader uploader(with_slots(1));
  const Rng rng(3);
  uploader.choose(book, {.now = Time(seconds(100)), .rng = rng});
  const auto first = served(book);
  CHECK_FALSE(uploader.choice_due(Time(seconds(109))));
  CHECK(uploader.choice_due(Time(seconds(110))));
  CHECK(uploader.choose(book, {.now = Time(seconds(110)), .rng = rng}).empty());
  CHECK(uploader.choose(book, {.now = Time(seconds(120)), .rng = rng}).empty());
  CHECK(served(book) == first);
}

TEST_CASE("uploader: free slots are filled with interested neighbours, and no further ones") {
  PeerBook book = book_of({0, 0, 0, 0});
  book.neighbours[ClientId(0)].interested = false;
  book.neighbours[ClientId(1)].choking = false;
  const Uploader uploader(with_slots(2));
  CHECK(uploader.fill(book) == std::vector{ClientId(2)});
  CHECK(uploader.fill(book).empty());
  CHECK(served(book) == std::set{ClientId(1), ClientId(2)});
}

TEST_CASE("uploader: neighbours are served in turn, and none that is choked") {
  PeerBook book = book_of({0, 0, 0});
  Torrent& torrent = open_for_all(book, ChunkSet::full(8));
  for (const std::uint32_t peer : {0U, 2U}) book.neighbours[ClientId(peer)].choking = false;
  for (auto& [peer, share] : torrent.shares) share.waiting = {0, 1, 2};
  Uploader uploader({});
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sent;
  while (const auto due = uploader.next(book, {})) sent.emplace_back(due->peer.value(), due->chunk.index);
  CHECK(sent ==
        std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 0}, {2, 0}, {0, 1}, {2, 1}, {0, 2}, {2, 2}});
  CHECK(book.neighbours[ClientId(0)].unsent == 3000);
  CHECK(torrent.sent == 6000);
}

TEST_CASE("uploader: at most 1 MiB waits on a link") {
  PeerBook book = book_of({0});
  book.neighbours[ClientId(0)].choking = false;
  Torrent& torrent = open_for_all(book, ChunkSet::full(2000));
  for (std::uint32_t chunk = 0; chunk < 2000; ++chunk)
    torrent.shares.at(ClientId(0)).waiting.push_back(chunk);
  Uploader uploader({});
  while (uploader.next(book, {})) {
  }
  CHECK(book.neighbours[ClientId(0)].unsent == 1'048'000);
}

TEST_CASE("uploader: a limit sets the time of the next chunk, if one waits") {
  PeerBook book = book_of({0});
  book.neighbours[ClientId(0)].choking = false;
  Torrent& torrent = open_for_all(book, ChunkSet::full(8));
  PeerRules rules;
  rules.upload_limit = 1000;
  Uploader uploader(rules);
  CHECK_FALSE(uploader.next_deadline(book));
  torrent.shares.at(ClientId(0)).waiting = {0, 1};
  const Time now(seconds(100));
  REQUIRE(uploader.next(book, now));
  CHECK_FALSE(uploader.next(book, now));
  REQUIRE(uploader.next_deadline(book));
  CHECK(to_seconds(*uploader.next_deadline(book) - now) == doctest::Approx(0.9));  // a tenth was saved up
  CHECK(uploader.next(book, *uploader.next_deadline(book)));
}

}  // namespace fedge::swarm
