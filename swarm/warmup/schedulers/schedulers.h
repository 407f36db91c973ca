// Schedulers: who sends which chunk to whom in one slot, decided by a tracker that knows everybody's bitfield
// and budgets and nothing of what chunks contain (the paper's section IV), and the rule of a plain swarm
// after the warm-up. Pure functions of the slot's state; a slot costs O(n (m + classes) nK / 64) words read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "swarm/warmup/config.h"
#include "swarm/warmup/schedulers/rarity.h"
#include "swarm/warmup/universe.h"

namespace fedge::swarm {

// What is known when a slot begins; everything is by client. The sets are of the universe's size.
struct SlotState {
  const Overlay& overlay;
  const Universe& universe;
  const Rarity& rarity;
  std::span<const ChunkSet* const> held;     // C_v
  std::span<const ChunkSet* const> offered;  // what each may send: a subset of what it holds
  std::span<const std::uint32_t> up;         // chunks; 0 for who is gone, or waits for its lag to pass
  std::span<const std::uint32_t> down;       // chunks; at most what the client still wants
  std::span<const std::uint32_t> rate;       // chunks a slot that its line carries: how fast a sender is
};

struct SchedulerOptions {
  bool non_owner_first = true;
  std::size_t parallel = 4;  // receivers that a sender serves in a slot, where the scheduler bounds them
  ChunkOrder order = ChunkOrder::kRarestFirst;
};

// In every slot: each transfer is between neighbours, of a chunk that its sender offers and its receiver
// lacks, none goes twice to the same receiver, and nobody sends or receives more than its budget.
using Scheduler = std::vector<Transfer> (*)(const SlotState& slot, const SchedulerOptions& options, Rng rng);

struct SchedulerEntry {
  const char* name;
  const char* rule;
  Scheduler schedule;
};
// The five of the paper; the first is its default.
std::span<const SchedulerEntry> schedulers();
Result<void> check_scheduler(std::string_view name);  // kInvalid names those that there are
Scheduler scheduler_named(std::string_view name);     // must have passed check_scheduler

// A request goes to the fastest holder; see greedy.cc.
std::vector<Transfer> greedy_fastest_first(const SlotState& slot, const SchedulerOptions& options, Rng rng);
// A request goes to a random holder, which serves them as they come, or those of the fastest requesters
// first.
std::vector<Transfer> random_fifo(const SlotState& slot, const SchedulerOptions& options, Rng rng);
std::vector<Transfer> random_fastest_first(const SlotState& slot, const SchedulerOptions& options, Rng rng);
// Senders send random chunks to random neighbours who lack them; what arrives twice in a slot is lost.
std::vector<Transfer> flooding(const SlotState& slot, const SchedulerOptions& options, Rng rng);
// Receivers know what their neighbours hold together, not who holds it, and ask one at random.
std::vector<Transfer> distributed(const SlotState& slot, const SchedulerOptions& options, Rng rng);

// Plain swarming (BitTorrent after the warm-up): receivers in random order take turns to get the rarest chunk
// that a neighbour offers, from a random one of those that have a chunk's time left and serve them already or
// fewer than `parallel` others. Without tit for tat (simplified). `non_owner_first` and `order` are not
// looked at.
std::vector<Transfer> plain_swarming(const SlotState& slot, const SchedulerOptions& options, Rng rng);

}  // namespace fedge::swarm
