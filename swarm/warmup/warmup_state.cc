#include "swarm/warmup/warmup_state.h"

#include <algorithm>

namespace fedge::swarm {

WarmupState::WarmupState(const WarmupConfig& config, Universe universe)
    : universe_(std::move(universe)),
      k_(cover_size(config)),
      rarity_(config.universe()),
      active_(config.nodes, true),
      got_(config.nodes, ChunkSet(config.universe())),
      own_got_(config.nodes) {
  for (std::size_t chunk = 0; chunk < universe_.size(); ++chunk) rarity_.add_holder(chunk);
}

std::size_t WarmupState::size() const { return static_cast<std::size_t>(std::ranges::count(active_, true)); }

std::size_t WarmupState::lacks(Pseudonym client, std::size_t coming) const {
  return k_ - std::min(k_, foreign(client) + coming);
}

bool WarmupState::covered() const {
  for (Pseudonym client = 0; client < active_.size(); ++client)
    if (active_[client] && lacks(client) > 0) return false;
  return true;
}

bool WarmupState::take(Pseudonym client, Chunk chunk) {
  if (!got_[client].add(chunk)) return false;
  if (universe_.owner(chunk) == client)
    ++own_got_[client];
  else
    rarity_.add_holder(chunk);
  return true;
}

void WarmupState::leave(Pseudonym client) {
  active_[client] = false;
  for (const Chunk chunk : universe_.chunks_of(client)) rarity_.remove_holder(chunk);
  got_[client].for_each([&](std::size_t chunk) {
    if (universe_.owner(static_cast<Chunk>(chunk)) != client) rarity_.remove_holder(chunk);
  });
}

}  // namespace fedge::swarm
