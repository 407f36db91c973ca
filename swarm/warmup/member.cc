#include "swarm/warmup/member.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "swarm/warmup/audit.h"

namespace fedge::swarm {
namespace {

std::vector<Chunk> first_chunks(std::size_t count) {
  std::vector<Chunk> chunks(count);
  std::iota(chunks.begin(), chunks.end(), Chunk{0});
  return chunks;
}

}  // namespace

WarmupMember::WarmupMember(const protocol::WarmupPlan& plan, const protocol::ObjectId& own, Rng rng)
    : plan_(plan),
      own_(own),
      buffer_(std::size_t{plan.members} * plan.chunks, first_chunks(plan.chunks),
              Gate{.gating = true, .k = plan.cover, .kappa = plan.kappa}, rng) {
  updates_.emplace(own, 0);
  for (const protocol::WarmupPlan::Neighbour& neighbour : plan.neighbours)
    neighbours_.insert(neighbour.client);
}

std::optional<Chunk> WarmupMember::number(const protocol::Chunk& chunk) const {
  const auto update = updates_.find(chunk.object);
  if (update == updates_.end() || chunk.index >= plan_.chunks) return std::nullopt;
  return update->second * plan_.chunks + chunk.index;
}

std::vector<protocol::Chunk> WarmupMember::receive(const protocol::Chunk& chunk) {
  if (updates_.size() < plan_.members)
    updates_.try_emplace(chunk.object, static_cast<std::uint32_t>(updates_.size()));
  const auto number = this->number(chunk);
  const std::size_t own_before = buffer_.own_eligible();
  if (!number || !buffer_.receive(*number)) return {};
  std::vector<protocol::Chunk> news{chunk};
  if (buffer_.own_eligible() > own_before)
    for (std::uint32_t index = 0; index < plan_.chunks; ++index)
      if (buffer_.eligible().has(index)) news.push_back({own_, index});
  return news;
}

bool WarmupMember::shows(const protocol::Chunk& chunk) const {
  const auto number = this->number(chunk);
  return number && buffer_.eligible().has(*number);
}

bool WarmupMember::may_spray(const protocol::WarmupSlot::Spray& spray) {
  if (!is_neighbour(spray.over) || spray.over == spray.to || spray.chunk >= plan_.chunks) return false;
  const auto sprayed = sprayed_.find(spray.chunk);
  if (sprayed != sprayed_.end()) return sprayed->second == spray.to;
  if (sprayed_.size() >= plan_.spray) return false;
  sprayed_.emplace(spray.chunk, spray.to);
  return true;
}

// Allows twice the planned number of chunks per neighbour, since lost chunks are sent again.
bool WarmupMember::may_relay(ClientId from, ClientId to) {
  if (!is_neighbour(from) || !is_neighbour(to) || from == to) return false;
  std::size_t& relayed = relayed_[from];
  if (relayed >= 2 * std::size_t{plan_.spray}) return false;
  ++relayed;
  return true;
}

// Accepts at most plan.spray chunks of an update: its owner may spray all of them to this client.
bool WarmupMember::takes_sealed(ClientId from, const protocol::ObjectId& update) const {
  const auto unsealed = unsealed_.find(update);
  return is_neighbour(from) && (unsealed == unsealed_.end() ? 0 : unsealed->second) < plan_.spray;
}

std::size_t WarmupMember::strikes(ClientId client) const {
  const auto known = strikes_.find(client);
  return known == strikes_.end() ? 0 : known->second;
}

void WarmupMember::note_strikes(ClientId client, std::size_t strikes) {
  if (is_neighbour(client)) strikes_[client] = strikes;
}

Result<void> audit_plan(const protocol::WarmupPlan& plan, std::uint64_t seed) {
  if (commit_to_seed(seed) != plan.commitment)
    return Error{ErrorCode::kCorrupt, "the seed does not match the commitment of the coordinator"};
  const Overlay overlay = Overlay::random(plan.members, plan.degree, overlay_rng(seed));
  std::vector<Pseudonym> told;
  for (const protocol::WarmupPlan::Neighbour& neighbour : plan.neighbours) told.push_back(neighbour.number);
  if (!std::ranges::equal(told, overlay.neighbours(plan.number)))
    return Error{ErrorCode::kRefused, "the assigned neighbours are not those that the seed produces"};
  return {};
}

}  // namespace fedge::swarm
