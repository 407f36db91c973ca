// Torrent: what a peer knows of one object that it exchanges, and of each neighbour's part in it. A plain
// record; Peer keeps it. Memory: 6 bytes a chunk, and for each neighbour a quarter of one, a seeder's half of
// one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "protocol/chunks/manifest.h"
#include "swarm/chunk_set.h"

namespace fedge::swarm {

// One object, exchanged with one neighbour.
struct Share {
  ChunkSet has;                          // as it says
  bool heard = false;                    // it has said what it has: it exchanges the object too
  std::map<std::uint32_t, Time> asked;   // of it, and since when
  std::set<std::uint32_t> cancelled;     // asked for, and no longer wanted
  std::deque<std::uint32_t> waiting;     // what it asks for, in its order
  ChunkSet given;                        // of that, all there was: it has been sent or will be
  std::map<std::uint32_t, Time> offers;  // a seeder: what it has been shown and has not got yet
  ChunkSet shown;                        // a seeder: all that it has been shown
  ChunkSet wants;                        // a seeder: what it takes in the end, as it says
  Time progressed{};                     // a seeder: when it last got a chunk, from whomever
  bool starved = false;                  // a seeder: it gets nothing from the others
};

// A seeder shows each chunk to one neighbour, and more copies of it only as far as this.
struct Seeding {
  double copies = 1;  // of the object, that it sends in all, unless somebody gets nothing otherwise
  Duration starved = seconds(5);  // a neighbour that has got nothing for so long is sent whatever it lacks
};

struct Torrent {
  protocol::ObjectId id{};
  std::uint64_t size = 0;        // bytes
  std::uint32_t chunk_size = 0;  // bytes
  ChunkSet held;
  ChunkSet wanted;                                    // of all chunks: what it takes to be complete
  ChunkSet missing;                                   // wanted, not held, and asked of nobody
  std::size_t lacking = 0;                            // wanted and not held
  std::vector<std::uint16_t> copies;                  // neighbours that have the chunk
  std::vector<std::uint32_t> order;                   // among the equally rare: a draw of this peer's own
  std::map<std::uint32_t, std::set<ClientId>> asked;  // chunks, and of whom
  std::set<ClientId> members;                         // who may have a part
  std::map<ClientId, Share> shares;                   // of members that are linked
  std::vector<std::uint32_t> fresh;                   // got and not told to the neighbours
  // It is exchanged as the tracker of this warm-up says.
  std::optional<protocol::ObjectId> warmup;
  std::map<ClientId, std::set<std::uint32_t>> ordered;  // what it has said to ask for, and of whom
  std::optional<Seeding> seeding;
  std::uint64_t sent = 0;                        // bytes, a seeder's
  std::map<std::uint32_t, std::size_t> offered;  // a seeder: chunks with offers, and how many

  std::size_t length(std::uint32_t chunk) const {
    const std::uint64_t begin = std::uint64_t{chunk} * chunk_size;
    return static_cast<std::size_t>(size - begin < chunk_size ? size - begin : chunk_size);
  }
  bool complete() const { return lacking == 0; }
  // Whether the neighbours hold all of it between them.
  bool obtainable() const {
    return std::ranges::all_of(copies, [](const std::uint16_t count) { return count > 0; });
  }
};

}  // namespace fedge::swarm
