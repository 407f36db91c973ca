#include "swarm/warmup/schedulers/schedulers.h"

#include <algorithm>
#include <array>

#include "core/check.h"

namespace fedge::swarm {
namespace {

constexpr std::array<SchedulerEntry, 5> kSchedulers = {{
    {"greedy_fastest_first", "a request goes to the fastest holder", greedy_fastest_first},
    {"random_fifo", "a request goes to a random holder, which serves them as they come", random_fifo},
    {"random_fastest_first", "a request goes to a random holder, which serves the fastest requesters first",
     random_fastest_first},
    {"flooding", "senders send random chunks to random neighbours", flooding},
    {"distributed", "receivers do not know who holds a chunk, and ask a random neighbour", distributed},
}};

}  // namespace

std::span<const SchedulerEntry> schedulers() { return kSchedulers; }

Result<void> check_scheduler(std::string_view name) {
  std::string names;
  for (const SchedulerEntry& entry : kSchedulers) {
    if (name == entry.name) return {};
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return invalid("scheduler must be one of " + names + ", not \"" + std::string(name) + "\"");
}

Scheduler scheduler_named(std::string_view name) {
  const auto* found = std::ranges::find(kSchedulers, name, &SchedulerEntry::name);
  FEDGE_CHECK(found != kSchedulers.end(), "a scheduler's name that was checked");
  return found->schedule;
}

}  // namespace fedge::swarm
