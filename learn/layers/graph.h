// Graph: the operations of a network and how they are connected, built and checked from a list of layers.
// Private to network.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/parameters.h"
#include "core/result.h"
#include "learn/layers/network.h"

namespace fedge::learn {

struct Node {
  std::string name;
  std::unique_ptr<Operation> operation;
  std::vector<std::size_t> from;  // numbers of nodes, from 1; 0: the model's input
  std::uint32_t index = 0;        // TensorInfo::layer, if it has parameters
  std::size_t parameters = 0;     // their number
  std::size_t readers = 0;        // nodes that read it
  bool in_place = false;          // shares the buffers of the node that it reads
};

struct Graph {
  std::vector<Node> nodes;   // node number n is nodes[n - 1]
  std::uint32_t layers = 0;  // with parameters
};

// Builds the operations and adds their tensors to the layout. kInvalid, naming the layer, if a shape does not
// fit, a name is not that of an earlier layer, or the result does not fit the data.
Result<Graph> build_graph(const NetworkSpec& network, const ModelContext& context, ParameterLayout& layout);

}  // namespace fedge::learn
