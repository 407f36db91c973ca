#include "learn/layers/graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "learn/layers/kinds.h"
#include "learn/layers/operations.h"

namespace fedge::learn {
namespace {

// Largest activation of a sample: a mistake in a run file must not exhaust the machine's memory.
constexpr double kMaxActivation = 268435456.0;  // 1 GiB
constexpr const char* kInput = "input";

// The gate of Oktay et al., "Attention U-Net", 2018, section 3: with inputs x and g, both projected to
// `units` channels, x sigmoid(psi(relu(W x + U g + b))).
std::vector<LayerSpec> attention_gate(const LayerSpec& gate, const std::string& name,
                                      const std::vector<std::string>& from, bool images) {
  const auto convolution = [&](const char* part, const std::string& input, std::size_t units, bool bias) {
    LayerSpec layer{.kind = images ? "conv2d" : "conv1d", .name = name + "-" + part, .from = {input}};
    layer.units = units;
    layer.window = 1;
    layer.bias = bias;
    return layer;
  };
  LayerSpec score = convolution("score", name + "-sum", 1, true);
  score.activation = Curve::kSigmoid;
  return {
      convolution("x", from[0], gate.units, false),
      convolution("gate", from[1], gate.units, true),
      {.kind = "add",
       .name = name + "-sum",
       .from = {name + "-x", name + "-gate"},
       .activation = Curve::kRelu},
      score,
      {.kind = "multiply", .name = name, .from = {from[0], name + "-score"}, .activation = gate.activation}};
}

class Builder {
 public:
  Builder(const NetworkSpec& network, const ModelContext& context, ParameterLayout& layout)
      : network_(network), context_(context), layout_(layout) {
    // Each layer without a name is called by its kind and the number of such layers so far.
    std::map<std::string, std::size_t> numbers;
    for (const LayerSpec& layer : network.layers) {
      const std::string prefix = find_layer_kind(layer.kind)->prefix;
      layer_names_.push_back(layer.name.empty() ? prefix + std::to_string(++numbers[prefix]) : layer.name);
      read_names_.insert(layer.from.begin(), layer.from.end());
    }
  }

  Result<Graph> build() {
    for (std::size_t i = 0; i < network_.layers.size(); ++i) {
      const LayerSpec& layer = network_.layers[i];
      const bool pooled = i + 1 < network_.layers.size() && is_pooled(i);
      FEDGE_TRY_VOID(add(layer, layer_names_[i], pooled));
      if (!pooled) continue;
      // The next layer is part of this one.
      const LayerSpec& pool = network_.layers[++i];
      if (pool.activation != Curve::kNone) FEDGE_TRY_VOID(add_curve(pool, layer_names_[i]));
      if (!names_.emplace(layer_names_[i], graph_.nodes.size()).second)
        return invalid("model.layer: two layers are called \"" + layer_names_[i] + "\"");
    }
    FEDGE_TRY_VOID(check_result());
    connect();
    return std::move(graph_);
  }

 private:
  const LayerShape& shape(std::size_t node) const {
    return node == 0 ? network_.input : graph_.nodes[node - 1].operation->shape();
  }

  Result<std::size_t> find(const std::string& name, const std::string& reader) const {
    if (name == kInput) return std::size_t{0};
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    return invalid("model.layer: " + reader + " reads \"" + name +
                   "\", which is not a layer before it; a layer can read only earlier ones");
  }

  // Whether layer i, a convolution with ReLU, and the pooling after it are one operation. Nothing else may
  // read between them.
  bool is_pooled(std::size_t i) const {
    const LayerSpec& layer = network_.layers[i];
    const LayerSpec& next = network_.layers[i + 1];
    if (next.kind != "max_pool" || next.window != 2 || next.stride != 2 || !next.from.empty()) return false;
    if (layer.from.size() > 1 || read_names_.contains(layer_names_[i])) return false;
    std::size_t from = graph_.nodes.size();
    if (!layer.from.empty()) {
      const Result<std::size_t> found = find(layer.from[0], "");
      if (!found) return false;
      from = found.value();
    }
    return pools_by_two(layer, shape(from));
  }

  Result<void> add(const LayerSpec& layer, const std::string& name, bool pooled) {
    if (names_.contains(name)) return invalid("model.layer: two layers are called \"" + name + "\"");
    std::vector<std::size_t> from;
    for (const std::string& input : layer.from) {
      FEDGE_TRY(node, find(input, name));
      from.push_back(node);
    }
    if (from.empty()) from.push_back(graph_.nodes.size());
    const LayerKind& kind = *find_layer_kind(layer.kind);
    if (kind.make == nullptr) return add_gate(layer, name, from);
    const bool merges = layer.kind == "add" || layer.kind == "multiply" || layer.kind == "concat";
    if (!merges && from.size() > 1)
      return invalid("model.layer: " + name + ": a " + layer.kind + " reads one layer, but `from` names " +
                     std::to_string(from.size()) + "; join them with add or concat");
    FEDGE_TRY_VOID(add_node(layer, name, std::move(from), pooled ? make_pooled_convolution : kind.make));
    const bool is_curve = kind.make == make_curve;
    if (!pooled && !is_curve && layer.activation != Curve::kNone) FEDGE_TRY_VOID(add_curve(layer, name));
    names_.emplace(name, graph_.nodes.size());
    return {};
  }

  Result<void> add_curve(const LayerSpec& layer, const std::string& name) {
    return add_node(layer, name, {graph_.nodes.size()}, make_curve);
  }

  Result<void> add_gate(const LayerSpec& gate, const std::string& name,
                        const std::vector<std::size_t>& from) {
    if (gate.from.size() != 2)
      return invalid("model.layer: " + name +
                     ": an attention_gate reads two layers: what it multiplies, and " +
                     "what opens it; name both in `from`");
    const bool images = shape(from[0]).rank == LayerShape::Rank::kImage;
    for (const LayerSpec& part : attention_gate(gate, name, gate.from, images))
      FEDGE_TRY_VOID(add(part, part.name, false));
    return {};
  }

  Result<void> add_node(const LayerSpec& layer, const std::string& name, std::vector<std::size_t> from,
                        MadeOperation (*make)(const LayerContext&)) {
    std::vector<LayerShape> shapes;
    for (const std::size_t node : from) shapes.push_back(shape(node));
    if (shapes[0].tokens && layer.kind != "embedding")
      return invalid("model.layer: " + name + ": it reads tokens; put an embedding before it");
    const std::size_t before = layout_.size();
    const bool flat = shapes[0].rank == LayerShape::Rank::kFlat;
    FEDGE_TRY(operation, make({.spec = layer,
                               .name = name,
                               .from = shapes,
                               .outputs = flat ? context_.target.size() : context_.target.outputs,
                               .text = context_.input.tokens,
                               .index = graph_.layers,
                               .trainable = context_.spec.adapter.rank == 0,
                               .layout = layout_}));
    const LayerShape& made = operation->shape();
    if (static_cast<double>(made.points()) * static_cast<double>(made.channels) > kMaxActivation)
      return invalid("model.layer: " + name + ": its output, " + made.text() +
                     ", has more than 2^28 numbers; use fewer units");
    graph_.nodes.push_back(
        {name, std::move(operation), std::move(from), graph_.layers, layout_.size() - before});
    if (layout_.size() > before) ++graph_.layers;
    return {};
  }

  Result<void> check_result() const {
    const TargetShape& target = context_.target;
    const LayerShape& last = shape(graph_.nodes.size());
    const bool text = context_.input.tokens;
    const std::size_t points = text ? context_.input.width : target.points;
    const bool by_points = last.points() == points && last.channels == target.outputs;
    const bool flat = !text && last.rank == LayerShape::Rank::kFlat && last.size() == target.size();
    if (layout_.size() == 0) return invalid("model.layer: no layer has parameters; add a dense layer");
    if (by_points || flat) return {};
    std::string needed = std::to_string(target.outputs) + (text ? " tokens" : " outputs");
    if (points > 1) needed += " at each of " + std::to_string(points) + (text ? " places" : " points");
    return invalid("model.layer: the last layer, " + graph_.nodes.back().name + ", gives " + last.text() +
                   ", but the data (" + (text ? std::string("text") : target.task()) + ") needs " + needed);
  }

  void connect() {
    for (const Node& node : graph_.nodes)
      for (const std::size_t from : node.from)
        if (from > 0) ++graph_.nodes[from - 1].readers;
    for (Node& node : graph_.nodes) {
      const std::size_t from = node.from[0];
      node.in_place = node.operation->in_place() && from > 0 && graph_.nodes[from - 1].readers == 1 &&
                      !graph_.nodes[from - 1].operation->reads_output();
    }
  }

  const NetworkSpec& network_;
  const ModelContext& context_;
  ParameterLayout& layout_;
  Graph graph_;
  std::vector<std::string> layer_names_;      // of all layers
  std::set<std::string> read_names_;          // that a `from` has
  std::map<std::string, std::size_t> names_;  // node of each layer so far
};

}  // namespace

Result<Graph> build_graph(const NetworkSpec& network, const ModelContext& context, ParameterLayout& layout) {
  FEDGE_TRY(graph, Builder(network, context, layout).build());
  for (std::size_t n = 0; n + 1 < graph.nodes.size(); ++n)
    if (graph.nodes[n].readers == 0)
      return invalid("model.layer: no layer reads " + graph.nodes[n].name +
                     "; name it in another layer's `from`, or remove it");
  return graph;
}

}  // namespace fedge::learn
