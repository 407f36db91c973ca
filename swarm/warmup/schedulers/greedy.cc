// The schedulers that assign chunks one by one: greedy fastest first, and plain swarming. In each pass over
// the receivers, every receiver that can gets one chunk.
#include <algorithm>
#include <numeric>

#include "swarm/warmup/schedulers/missing_chunks.h"

namespace fedge::swarm {
namespace {

struct Rule {
  bool fastest = false;          // prefer the sender with the most budget left; else a random one
  bool non_owner_first = false;  // see SchedulerOptions
  ChunkOrder order = ChunkOrder::kRarestFirst;
  std::size_t parallel = 0;  // maximum number of receivers of a sender; 0: no limit
};

class Assignment {
 public:
  Assignment(const SlotState& slot, Rule rule, Rng rng)
      : slot_(slot),
        rule_(rule),
        rng_(rng.fork("choice")),
        up_(slot.up.begin(), slot.up.end()),
        down_(slot.down.begin(), slot.down.end()),
        served_(up_.size()),
        served_by_(up_.size()),
        missing_(up_.size()) {
    for (Pseudonym peer = 0; peer < up_.size(); ++peer)
      if (down_[peer] > 0 && !slot.held[peer]->complete())
        missing_[peer].emplace(slot, peer, rule.order, rng.fork("order", peer));
  }

  std::vector<Transfer> run(std::vector<Pseudonym> receivers) {
    std::erase_if(receivers, [&](Pseudonym receiver) { return !missing_[receiver]; });
    while (!receivers.empty())
      std::erase_if(receivers, [&](Pseudonym receiver) { return down_[receiver] == 0 || !assign(receiver); });
    return std::move(transfers_);
  }

 private:
  // After this many chunks in a row that no neighbour can send, skips the chunks of neighbours that cannot
  // send.
  static constexpr std::size_t kTries = 8;

  bool assign(Pseudonym receiver) {
    for (std::size_t failed = 0;; ++failed) {
      if (failed % kTries == 0) {
        usable(receiver);
        if (senders_.empty()) return false;
        if (failed > 0) missing_[receiver]->restrict_to(senders_);
      }
      const auto chunk = missing_[receiver]->next();
      if (!chunk) return false;
      holders(*chunk);
      if (candidates_.empty()) continue;
      give(receiver, *chunk, rule_.fastest ? fastest() : candidates_[rng_.below(candidates_.size())]);
      return true;
    }
  }

  // Collects the neighbours that can still send to the receiver, whatever the chunk.
  void usable(Pseudonym receiver) {
    senders_.clear();
    for (const Pseudonym sender : slot_.overlay.neighbours(receiver)) {
      if (up_[sender] == 0) continue;
      const bool full = rule_.parallel > 0 && served_[sender] >= rule_.parallel;
      if (!full || std::ranges::find(served_by_[receiver], sender) != served_by_[receiver].end())
        senders_.push_back(sender);
    }
  }

  void holders(Chunk chunk) {
    candidates_.clear();
    for (const Pseudonym sender : senders_)
      if (slot_.offered[sender]->has(chunk)) candidates_.push_back(sender);
    if (rule_.non_owner_first && candidates_.size() > 1) std::erase(candidates_, slot_.universe.owner(chunk));
  }

  Pseudonym fastest() {
    std::size_t ties = 0;
    Pseudonym best = candidates_.front();
    for (const Pseudonym sender : candidates_) {
      const auto ahead =
          std::pair(up_[sender], slot_.rate[sender]) <=> std::pair(up_[best], slot_.rate[best]);
      if (ahead < 0) continue;
      ties = ahead > 0 ? 1 : ties + 1;
      if (ties == 1 || rng_.below(ties) == 0) best = sender;
    }
    return best;
  }

  void give(Pseudonym receiver, Chunk chunk, Pseudonym sender) {
    --up_[sender];
    --down_[receiver];
    if (rule_.parallel > 0 && std::ranges::find(served_by_[receiver], sender) == served_by_[receiver].end()) {
      served_by_[receiver].push_back(sender);
      ++served_[sender];
    }
    transfers_.push_back({sender, receiver, chunk});
  }

  const SlotState& slot_;
  Rule rule_;
  Rng rng_;
  std::vector<std::uint32_t> up_;
  std::vector<std::uint32_t> down_;
  std::vector<std::size_t> served_;                    // number of receivers, by sender
  std::vector<std::vector<Pseudonym>> served_by_;      // senders, by receiver
  std::vector<std::optional<MissingChunks>> missing_;  // for receivers that need chunks
  std::vector<Pseudonym> senders_;
  std::vector<Pseudonym> candidates_;
  std::vector<Transfer> transfers_;
};

std::vector<Pseudonym> everybody(const SlotState& slot) {
  std::vector<Pseudonym> peers(slot.up.size());
  std::iota(peers.begin(), peers.end(), Pseudonym{0});
  return peers;
}

}  // namespace

std::vector<Transfer> greedy_fastest_first(const SlotState& slot, const SchedulerOptions& options, Rng rng) {
  auto receivers = everybody(slot);
  std::ranges::stable_sort(receivers, {}, [&](Pseudonym peer) { return slot.held[peer]->count(); });
  return Assignment(
             slot, {.fastest = true, .non_owner_first = options.non_owner_first, .order = options.order}, rng)
      .run(std::move(receivers));
}

std::vector<Transfer> plain_swarming(const SlotState& slot, const SchedulerOptions& options, Rng rng) {
  auto receivers = everybody(slot);
  rng.fork("turns").shuffle(std::span(receivers));
  return Assignment(slot, {.parallel = options.parallel}, rng).run(std::move(receivers));
}

}  // namespace fedge::swarm
