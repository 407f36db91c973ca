// Schedulers: which client sends which chunk to which client in one slot (the paper's section IV). The
// tracker that decides knows all bitfields and budgets, but nothing of the chunks' content. Also the rule of
// a plain swarm after the warm-up. Pure functions of the slot's state. Cost of a slot:
// O(n (m + classes) nK / 64) words read.
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

// The state at the beginning of a slot, by client. The sets have the universe's size.
struct SlotState {
  const Overlay& overlay;
  const Universe& universe;
  const Rarity& rarity;
  std::span<const ChunkSet* const> held;     // C_v
  std::span<const ChunkSet* const> offered;  // chunks that each client may send: a subset of those it holds
  std::span<const std::uint32_t> up;  // upload budget in chunks; 0 if the client is gone or waits for its lag
  std::span<const std::uint32_t> down;  // download budget in chunks; at most what the client still needs
  std::span<const std::uint32_t> rate;  // chunks per slot that the client's line carries
};

struct SchedulerOptions {
  bool non_owner_first = true;
  std::size_t parallel = 4;  // receivers of a sender in a slot, if limited
  ChunkOrder order = ChunkOrder::kRarestFirst;
};

// A scheduler's transfers of one slot. Each is between neighbours, of a chunk that the sender offers and the
// receiver lacks. No receiver gets a chunk twice, and no client exceeds its budgets.
using Scheduler = std::vector<Transfer> (*)(const SlotState& slot, const SchedulerOptions& options, Rng rng);

struct SchedulerEntry {
  const char* name;
  const char* rule;
  Scheduler schedule;
};
// The five schedulers of the paper; the first is its default.
std::span<const SchedulerEntry> schedulers();
Result<void> check_scheduler(std::string_view name);  // kInvalid lists the valid names
Scheduler scheduler_named(std::string_view name);     // `name` must have passed check_scheduler()

// A request goes to the fastest holder; see greedy.cc.
std::vector<Transfer> greedy_fastest_first(const SlotState& slot, const SchedulerOptions& options, Rng rng);
// A request goes to a random holder. It serves requests in the order of arrival (FIFO), or those of the
// fastest requesters first.
std::vector<Transfer> random_fifo(const SlotState& slot, const SchedulerOptions& options, Rng rng);
std::vector<Transfer> random_fastest_first(const SlotState& slot, const SchedulerOptions& options, Rng rng);
// Senders send random chunks to random neighbours that lack them. A chunk that arrives twice in a slot is
// lost.
std::vector<Transfer> flooding(const SlotState& slot, const SchedulerOptions& options, Rng rng);
// Receivers know which chunks their neighbours hold together, but not which neighbour, and ask a random one.
std::vector<Transfer> distributed(const SlotState& slot, const SchedulerOptions& options, Rng rng);

// Plain swarming (BitTorrent after the warm-up). Receivers in random order take turns to get the rarest chunk
// that a neighbour offers. The sender is a random one with upload budget left that already serves the
// receiver, or serves fewer than `parallel` others. There is no tit for tat (simplified). `non_owner_first`
// and `order` are ignored.
std::vector<Transfer> plain_swarming(const SlotState& slot, const SchedulerOptions& options, Rng rng);

}  // namespace fedge::swarm
