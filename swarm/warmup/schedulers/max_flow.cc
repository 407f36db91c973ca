#include "swarm/warmup/schedulers/max_flow.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "core/check.h"

namespace fedge::swarm {

void FlowNetwork::add_edge(std::size_t from, std::size_t to, std::uint32_t capacity) {
  edges_.push_back({static_cast<std::uint32_t>(to), first_[from], capacity});
  first_[from] = static_cast<std::uint32_t>(edges_.size() - 1);
  edges_.push_back({static_cast<std::uint32_t>(from), first_[to], 0});
  first_[to] = static_cast<std::uint32_t>(edges_.size() - 1);
}

bool FlowNetwork::find_levels(std::size_t source, std::size_t sink) {
  level_.assign(first_.size(), kNone);
  level_[source] = 0;
  std::vector<std::size_t> queue = {source};
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (std::uint32_t e = first_[queue[i]]; e != kNone; e = edges_[e].next) {
      const Edge& edge = edges_[e];
      if (edge.capacity == 0 || level_[edge.to] != kNone) continue;
      level_[edge.to] = level_[queue[i]] + 1;
      queue.push_back(edge.to);
    }
  return level_[sink] != kNone;
}

// The recursion is as deep as the level graph, since every step goes to the next level.
std::uint32_t FlowNetwork::push(std::size_t node, std::size_t sink, std::uint32_t flow) {
  if (node == sink) return flow;
  std::uint32_t pushed = 0;
  for (std::uint32_t& e = next_[node]; e != kNone; e = edges_[e].next) {
    Edge& edge = edges_[e];
    if (edge.capacity == 0 || level_[edge.to] != level_[node] + 1) continue;
    const std::uint32_t through = push(edge.to, sink, std::min(flow - pushed, edge.capacity));
    edge.capacity -= through;
    edges_[e ^ 1U].capacity += through;
    pushed += through;
    if (pushed == flow) return pushed;
  }
  return pushed;
}

std::uint64_t FlowNetwork::max_flow(std::size_t source, std::size_t sink) {
  std::uint64_t total = 0;
  while (find_levels(source, sink)) {
    next_ = first_;
    total += push(source, sink, std::numeric_limits<std::uint32_t>::max());
  }
  return total;
}

namespace {

// Number of chunks that the receiver lacks, by the set of neighbours that offer them: bit i is the i-th of
// `senders`. Skips words without missing chunks quickly.
std::unordered_map<std::uint64_t, std::uint32_t> groups_of(const SlotState& slot, Pseudonym receiver,
                                                           std::span<const Pseudonym> senders) {
  std::unordered_map<std::uint64_t, std::uint32_t> groups;
  const auto held = slot.held[receiver]->words();
  for (std::size_t word = 0; word < held.size(); ++word) {
    std::uint64_t missing = 0;
    for (const Pseudonym sender : senders) missing |= slot.offered[sender]->words()[word];
    for (missing &= ~held[word]; missing != 0; missing &= missing - 1) {
      const std::uint64_t bit = missing & (~missing + 1);
      std::uint64_t offered_by = 0;
      for (std::size_t i = 0; i < senders.size(); ++i)
        if ((slot.offered[senders[i]]->words()[word] & bit) != 0) offered_by |= std::uint64_t{1} << i;
      ++groups[offered_by];
    }
  }
  return groups;
}

}  // namespace

std::uint64_t max_flow(const SlotState& slot) {
  const std::size_t nodes = slot.overlay.size();
  const std::size_t source = 2 * nodes;
  const std::size_t sink = source + 1;
  FlowNetwork network(sink + 1);  // senders, receivers, source and sink
  for (Pseudonym peer = 0; peer < nodes; ++peer) {
    if (slot.up[peer] > 0) network.add_edge(source, peer, slot.up[peer]);
    if (slot.down[peer] == 0) continue;
    network.add_edge(nodes + peer, sink, slot.down[peer]);
    std::vector<Pseudonym> senders;
    for (const Pseudonym neighbour : slot.overlay.neighbours(peer))
      if (slot.up[neighbour] > 0 && !slot.offered[neighbour]->empty()) senders.push_back(neighbour);
    FEDGE_CHECK(senders.size() <= kMostFlowNeighbours, "at most 64 neighbours that offer something");
    const auto unordered = groups_of(slot, peer, senders);
    const std::map<std::uint64_t, std::uint32_t> groups(unordered.begin(), unordered.end());
    for (const auto& [offered_by, chunks] : groups) {
      const std::size_t group = network.add_node();
      network.add_edge(group, nodes + peer, std::min(chunks, slot.down[peer]));
      for (std::size_t i = 0; i < senders.size(); ++i)
        if ((offered_by >> i & 1) != 0)
          network.add_edge(senders[i], group, std::min(chunks, slot.up[senders[i]]));
    }
  }
  return network.max_flow(source, sink);
}

}  // namespace fedge::swarm
