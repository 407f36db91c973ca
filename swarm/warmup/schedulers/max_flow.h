// The most chunks that a slot's state lets through, whatever the schedule: a maximum flow from senders, whose
// capacity is their upload budget, by missing chunks to receivers, whose capacity is their download budget
// (the paper's section IV). Chunks that one receiver lacks and the same neighbours offer are one node with as
// much capacity as there are chunks, which changes no flow and makes the network small. Dinic's algorithm.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "swarm/warmup/schedulers/schedulers.h"

namespace fedge::swarm {

// A flow network of integer capacities. Not thread-safe.
class FlowNetwork {
 public:
  explicit FlowNetwork(std::size_t nodes) : first_(nodes, kNone) {}
  std::size_t add_node() {
    first_.push_back(kNone);
    return first_.size() - 1;
  }
  void add_edge(std::size_t from, std::size_t to, std::uint32_t capacity);
  // Changes the network into its residual; call once. O(nodes^2 edges) at worst.
  std::uint64_t max_flow(std::size_t source, std::size_t sink);

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Edge {
    std::uint32_t to;
    std::uint32_t next;  // of the same node
    std::uint32_t capacity;
  };
  bool find_levels(std::size_t source, std::size_t sink);
  std::uint32_t push(std::size_t node, std::size_t sink, std::uint32_t flow);

  std::vector<std::uint32_t> first_;  // edge, by node
  std::vector<Edge> edges_;           // an edge and its reverse side by side
  std::vector<std::uint32_t> level_;
  std::vector<std::uint32_t> next_;
};

// Chunks that could be transferred in this slot. A client may have at most 64 neighbours that offer
// something.
std::uint64_t max_flow(const SlotState& slot);
constexpr std::size_t kMostFlowNeighbours = 64;

}  // namespace fedge::swarm
