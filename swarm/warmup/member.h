// WarmupMember: the rules that a client follows in a round's warm-up, whatever the tracker asks for. Own
// chunks are sent only once a cover set hides them, and no chunk before the client's lag has passed. Chunks
// are exchanged only with neighbours. The number of sprayed chunks is limited in both directions. Used by
// daemons and in virtual time. Memory: two bits per chunk of the round's updates. Not thread-safe.
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
  // `own`: the client's update, which it holds completely.
  WarmupMember(const protocol::WarmupPlan& plan, const protocol::ObjectId& own, Rng rng);

  // Records a chunk that has arrived. Returns the chunks that thereby become sendable, apart from the lag:
  // this one, and possibly own chunks. Ignores chunks of other objects than the round's updates.
  std::vector<protocol::Chunk> receive(const protocol::Chunk& chunk);
  // Enters this slot; earlier slots are ignored.
  void enter(std::uint32_t slot) { slot_ = std::max(slot_, slot); }

  // Whether the client reports the chunk to the tracker, and only to it: it holds the chunk and, if it is an
  // own one, sends it.
  bool shows(const protocol::Chunk& chunk) const;
  bool may_send(const protocol::Chunk& chunk) const { return slot_ >= plan_.lag && shows(chunk); }
  bool is_neighbour(ClientId client) const { return neighbours_.contains(client); }
  // Whether the client sprays this chunk of its own through neighbour `over` to client `to`. Each chunk goes
  // to only one client, and at most plan.spray chunks are sprayed. Repeating a question gives the same
  // answer.
  bool may_spray(const protocol::WarmupSlot::Spray& spray);
  // Whether the client relays one more chunk that neighbour `from` has sealed for neighbour `to`.
  bool may_relay(ClientId from, ClientId to);
  // Whether the client keeps one more chunk of this update that neighbour `from` has relayed, sealed for it.
  bool takes_sealed(ClientId from, const protocol::ObjectId& update) const;
  void unsealed(const protocol::ObjectId& update) { ++unsealed_[update]; }
  // Number of forbidden requests of a client, over all its connections.
  std::size_t strikes(ClientId client) const;
  void note_strikes(ClientId client, std::size_t strikes);

  const protocol::WarmupPlan& plan() const { return plan_; }
  const protocol::ObjectId& own() const { return own_; }

 private:
  // Numbers chunks update by update, in the order in which updates become known; its own is the first.
  std::optional<Chunk> number(const protocol::Chunk& chunk) const;

  protocol::WarmupPlan plan_;
  protocol::ObjectId own_;
  std::set<ClientId> neighbours_;
  std::map<protocol::ObjectId, std::uint32_t> updates_;
  ClientBuffer buffer_;
  std::uint32_t slot_ = 0;
  std::map<std::uint32_t, ClientId> sprayed_;  // the receiver of each sprayed own chunk
  std::map<ClientId, std::size_t> relayed_;    // by sending neighbour
  std::map<protocol::ObjectId, std::size_t> unsealed_;
  std::map<ClientId, std::size_t> strikes_;  // by neighbour
};

// Checks that the receiver has these neighbours in the overlay of the tracker's seed. kCorrupt: the seed does
// not match the commitment. kRefused: the neighbours differ. O(members^2 * degree).
Result<void> audit_plan(const protocol::WarmupPlan& plan, std::uint64_t seed);

}  // namespace fedge::swarm
