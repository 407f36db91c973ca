// WarmupMember: what one client of a round keeps to in its warm-up, whatever the tracker asks of it: own
// chunks that nobody gets before a cover set hides them, no chunk before its lag has passed, chunks of
// neighbours alone, and so many sprayed ones, out and in. The same for daemons and in virtual time. Two bits
// a chunk of the round's updates. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/ids.h"
#include "core/rng.h"
#include "protocol/chunks/chunk_messages.h"
#include "protocol/messages.h"
#include "swarm/warmup/client_buffer.h"

namespace fedge::swarm {

class WarmupMember {
 public:
  // `own`: its update, every chunk of which is here.
  WarmupMember(const protocol::WarmupPlan& plan, const protocol::ObjectId& own, Rng rng);

  // A chunk has come, of an update of the round. Those that it would send from now on, but for its lag: this
  // one, and with it, perhaps, its own. What is none of the round's is not counted.
  std::vector<protocol::Chunk> receive(const protocol::Chunk& chunk);
  // It is in this slot now, and does not go back.
  void enter(std::uint32_t slot) { slot_ = std::max(slot_, slot); }

  // What it tells the tracker, and nobody else: that it has this chunk, and, of an own one, that it sends it.
  bool shows(const protocol::Chunk& chunk) const;
  bool may_send(const protocol::Chunk& chunk) const { return slot_ >= plan_.lag && shows(chunk); }
  bool is_neighbour(ClientId client) const { return neighbours_.contains(client); }
  // Whether it sprays this chunk of its own: over a neighbour to another client, each chunk to one client
  // alone, and no more of them than the plan says. Asked again for the same it says the same.
  bool may_spray(const protocol::WarmupSlot::Spray& spray);
  // Whether it passes on one more chunk that a neighbour has sealed for another one.
  bool may_relay(ClientId from, ClientId to);
  // Whether it keeps one more chunk of this update that a neighbour has passed on, sealed for it.
  bool takes_sealed(ClientId from, const protocol::ObjectId& update) const;
  void unsealed(const protocol::ObjectId& update) { ++unsealed_[update]; }
  // Of a client that asks for what it may not, over all its links.
  std::size_t strikes(ClientId client) const;
  void note_strikes(ClientId client, std::size_t strikes);

  const protocol::WarmupPlan& plan() const { return plan_; }
  const protocol::ObjectId& own() const { return own_; }

 private:
  // Chunks are numbered update by update, as these become known; its own is the first.
  std::optional<Chunk> number(const protocol::Chunk& chunk) const;

  protocol::WarmupPlan plan_;
  protocol::ObjectId own_;
  std::set<ClientId> neighbours_;
  std::map<protocol::ObjectId, std::uint32_t> updates_;
  ClientBuffer buffer_;
  std::uint32_t slot_ = 0;
  std::map<std::uint32_t, ClientId> sprayed_;  // own chunks, and to whom
  std::map<ClientId, std::size_t> relayed_;    // by neighbour
  std::map<protocol::ObjectId, std::size_t> unsealed_;
  std::map<ClientId, std::size_t> strikes_;  // of neighbours
};

// Whether the overlay that the tracker committed to, by its seed, has these neighbours of the receiver's:
// kCorrupt, kRefused, kInvalid. O(members^2 * degree).
Result<void> audit_plan(const protocol::WarmupPlan& plan, std::uint64_t seed);

}  // namespace fedge::swarm
