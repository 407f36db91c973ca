// Network: the model of all built-in kinds without attention: operations in the order of their list, each
// reading one or more of those before it.
#pragma once

#include <memory>
#include <vector>

#include "core/result.h"
#include "learn/layers/operation.h"
#include "learn/model.h"

namespace fedge::learn {

struct NetworkSpec {
  std::vector<LayerSpec> layers;
  LayerShape input;
  Initialisation initialisation = Initialisation::kUniform;
};

// The shape of the data's inputs for the first layer.
LayerShape layer_input(const InputShape& input);
// kInvalid, naming the layer, if a shape does not fit; the adapters of context.spec are those of dense
// layers.
Result<std::unique_ptr<Model>> make_network(const NetworkSpec& network, const ModelContext& context);

}  // namespace fedge::learn
