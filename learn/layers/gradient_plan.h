// The buffers of a backward pass. The gradient with respect to a node's output is in use from the backward
// pass of the node's last reader to its own; nodes whose gradients are not in use together share a buffer.
// Private to network.cc.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "learn/layers/graph.h"

namespace fedge::learn {

struct GradientPlan {
  std::vector<std::size_t> buffers;  // by node
  std::vector<std::size_t> sizes;    // of the buffers, in floats
};

// At least one node; `batch` samples.
GradientPlan plan_gradients(std::span<const Node> nodes, std::size_t batch);

}  // namespace fedge::learn
