// Uploader: which neighbours a peer serves, and which chunk it sends next within its upload limit. Pure; its
// peer reports the results to the neighbours. After Cohen, "Incentives build robustness in BitTorrent"
// (2003), section 3. Cost: O(neighbours) for each chunk and each choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "core/node.h"
#include "core/time.h"
#include "protocol/chunks/chunk_messages.h"
#include "swarm/peer/book.h"
#include "swarm/peer/peer_rules.h"
#include "swarm/peer/upload_pace.h"

namespace fedge::swarm {

class Uploader {
 public:
  explicit Uploader(const PeerRules& rules) : rules_(rules), pace_(rules.upload_limit) {}

  struct Due {
    ClientId peer;
    protocol::Chunk chunk;
    std::size_t length = 0;  // bytes
  };
  // Returns the next chunk to hand to a link, and counts it as unsent; nothing if none may be sent now.
  // Serves neighbours in turn, so that one with many requests does not delay one with few.
  std::optional<Due> next(PeerBook& book, Time now);
  // Spends upload on bytes other than next()'s.
  void spend(std::size_t bytes, Time now) { pace_.spend(bytes, now); }
  // The time from which the upload limit permits the next chunk, if a request waits for it.
  std::optional<Time> next_deadline(const PeerBook& book) const;

  // Whether the served neighbours are to be chosen again.
  bool choice_due(Time now) const { return now >= next_choice_; }
  // Chooses the neighbours that sent the most or, if nothing is missing, those that receive the fastest. The
  // optimistic slot goes to one more, which may prove better. Returns the neighbours that this chokes or
  // no longer chokes.
  std::vector<ClientId> choose(PeerBook& book, const StepContext& context);
  // Gives free slots to interested neighbours without waiting for the next choice, and returns them.
  std::vector<ClientId> fill(PeerBook& book) const;

 private:
  std::optional<Due> next_for(ClientId peer, PeerBook& book, Time now);

  PeerRules rules_;
  UploadPace pace_;
  std::optional<ClientId> turn_;  // receiver of the last chunk
  std::optional<ClientId> optimistic_;
  Time next_choice_{};
  Time next_optimist_{};
  std::uint64_t choices_ = 0;  // of an optimistic slot
};

}  // namespace fedge::swarm
