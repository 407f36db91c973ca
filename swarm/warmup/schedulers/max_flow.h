// The maximum number of chunks that any schedule can transfer in a slot (the paper's section IV). It is a
// maximum flow from senders, limited by their upload budgets, through missing chunks to receivers, limited by
// their download budgets. Chunks that one receiver lacks and the same neighbours offer form one node whose
// capacity is their number; this shrinks the network without changing the flow. Dinic's algorithm. Pure.
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
  // Changes the network into its residual; call once. Worst case: O(nodes^2 edges).
  std::uint64_t max_flow(std::size_t source, std::size_t sink);

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Edge {
    std::uint32_t to;
    std::uint32_t next;  // next edge of the same node
    std::uint32_t capacity;
  };
  bool find_levels(std::size_t source, std::size_t sink);
  std::uint32_t push(std::size_t node, std::size_t sink, std::uint32_t flow);

  std::vector<std::uint32_t> first_;  // first edge, by node
  std::vector<Edge> edges_;           // each edge is followed by its reverse
  std::vector<std::uint32_t> level_;
  std::vector<std::uint32_t> next_;
};

// Number of chunks that could be transferred in this slot. At most kMostFlowNeighbours neighbours of a client
// may offer something.
std::uint64_t max_flow(const SlotState& slot);
constexpr std::size_t kMostFlowNeighbours = 64;

}  // namespace fedge::swarm
