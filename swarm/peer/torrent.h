// Torrent: a peer's state for one object, and for each neighbour's part in it. Its functions keep the sums
// and indices over the shares consistent; the peer and its owner only read the fields. Not thread-safe.
// Memory: 6 bytes per chunk, and per neighbour two bits per chunk, or four in a seeder.
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
#include "swarm/peer/neighbour.h"

namespace fedge::swarm {

// One object, exchanged with one neighbour.
struct Share {
  ChunkSet has;                          // chunks that it announces
  bool heard = false;                    // it has announced its chunks: it exchanges the object too
  std::map<std::uint32_t, Time> asked;   // chunks requested from it, and when
  std::set<std::uint32_t> cancelled;     // requested chunks that are no longer needed
  std::deque<std::uint32_t> waiting;     // its pending requests, in its order
  ChunkSet given;                        // all chunks of its requests that were or will be sent
  std::size_t refusals = 0;              // requested chunks that it does not exchange any more, as it says
  std::size_t reopenings = 0;            // times that it has opened it anew and lost or refused chunks
  std::map<std::uint32_t, Time> offers;  // seeder: chunks offered to it that it does not have yet, and when
  ChunkSet shown;                        // seeder: all chunks offered to it
  ChunkSet wants;                        // seeder: chunks that it wants, as it announces
  std::size_t unsent = 0;                // its part of Neighbour::unsent
  Time progressed{};                     // seeder: when it last got a chunk from any neighbour
  bool starved = false;                  // seeder: the other neighbours send it nothing
};

// Limits of a seeder, which shows each chunk to one neighbour first.
struct Seeding {
  double copies = 1;  // copies of the object that it sends in all; starved neighbours may exceed this
  Duration starved = seconds(5);  // a neighbour without progress for this long is starved: it gets any chunk
};

struct Torrent {
  // `held` and `wanted` are sets of all the object's chunks.
  Torrent(const protocol::ObjectId& object, const protocol::Manifest& manifest, const ChunkSet& held_chunks,
          const ChunkSet& wanted_chunks);

  std::size_t length(std::uint32_t chunk) const {
    const std::uint64_t begin = std::uint64_t{chunk} * chunk_size;
    return static_cast<std::size_t>(size - begin < chunk_size ? size - begin : chunk_size);
  }
  bool complete() const { return lacking == 0; }
  // Whether it is complete and has these chunks too, so that whoever opens it again for them need not wait.
  bool complete_for(const ChunkSet& chunks) const {
    return complete() && chunks.count_common(held) == chunks.count();
  }
  // Whether the neighbours together hold every chunk.
  bool obtainable() const {
    return std::ranges::all_of(copies, [](const std::uint16_t count) { return count > 0; });
  }

  // Shares. A neighbour's entry must be that of the share's peer.
  Share& begin_share(ClientId peer, Time now);
  void end_share(ClientId peer, Neighbour& neighbour);
  // The neighbour announces one more chunk, or all of its chunks.
  void announced(Share& share, std::uint32_t chunk, Time now);
  void announced(Share& share, const ChunkSet& has, Time now);
  // The neighbour may request again what it was sent, and a seeder offers it again.
  void forget_sent(Share& share, Time now);
  // The neighbour does not have the chunk.
  void lost(Share& share, std::uint32_t chunk);
  // Whether the neighbour may have chunks that this peer lacks, and exchanges them without a tracker.
  bool wants_from(ClientId peer) const;

  // Requests to a neighbour.
  // Returns the rarest chunk that the neighbour has and that was requested from no one.
  std::optional<std::uint32_t> rarest(const Share& share) const;
  // Returns the next chunk that the warm-up's tracker has ordered from the neighbour. `again`: also a chunk
  // that is already held.
  std::optional<std::uint32_t> next_order(ClientId peer, const Share& share, bool again);
  void request(ClientId peer, Neighbour& neighbour, std::uint32_t chunk, Time now);
  // Ends the request for a chunk that has arrived or was refused. Returns false if there is none, or if it
  // was cancelled.
  bool end_request(ClientId peer, Neighbour& neighbour, std::uint32_t chunk);
  // Adds a chunk that was not held. Returns the neighbours whose requests for it are thereby cancelled.
  std::set<ClientId> store(std::uint32_t chunk);

  // Offers of a seeder.
  // Offers further chunks to the neighbour, and returns them.
  std::vector<std::uint32_t> offer(Share& share, Time now);
  // Withdraws offers older than `patience` that the neighbour neither requests nor reports as received.
  void withdraw_late(Share& share, Duration patience, Time now);

  protocol::ObjectId id{};
  std::uint64_t size = 0;        // bytes
  std::uint32_t chunk_size = 0;  // bytes
  ChunkSet held;
  ChunkSet wanted;                                    // chunks needed for completeness
  ChunkSet missing;                                   // wanted, not held and not requested
  std::size_t lacking = 0;                            // number of chunks wanted and not held
  std::vector<std::uint16_t> copies;                  // number of neighbours that have each chunk
  std::vector<std::uint32_t> order;                   // random order of equally rare chunks
  std::map<std::uint32_t, std::set<ClientId>> asked;  // requested chunks, and from which neighbours
  std::set<ClientId> members;                         // admitted members
  std::map<ClientId, Share> shares;                   // of linked members
  std::vector<std::uint32_t> fresh;                   // new chunks not yet announced
  // The warm-up whose tracker directs the exchange; none for a plain swarm.
  std::optional<protocol::ObjectId> warmup;
  std::map<ClientId, std::set<std::uint32_t>> ordered;  // chunks ordered by the tracker, by neighbour
  std::optional<Seeding> seeding;
  std::uint64_t sent = 0;                        // seeder: bytes
  std::map<std::uint32_t, std::size_t> offered;  // seeder: number of pending offers of a chunk

 private:
  void withdraw_request(ClientId peer, Neighbour& neighbour, std::uint32_t chunk);
  void withdraw_offer(Share& share, std::uint32_t chunk);
  std::optional<std::uint32_t> next_offer(const Share& share) const;
};

}  // namespace fedge::swarm
