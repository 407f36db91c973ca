#include "learn/layers/network.h"

#include <algorithm>

#include "core/aligned_buffer.h"
#include "core/check.h"
#include "learn/layers/gradient_plan.h"
#include "learn/layers/graph.h"
#include "learn/models/adapters.h"
#include "learn/models/loss.h"
#include "learn/objectives/contrast.h"

namespace fedge::learn {
namespace {

class NetworkSpace final : public Workspace {
 public:
  NetworkSpace(const Graph& graph, const Adapters& adapters, std::size_t batch)
      : max_batch(batch), written(graph.nodes.size() + 1), trained_below(graph.nodes.size() + 1) {
    std::size_t most_parameters = 0;
    std::size_t most_points = 1;
    std::size_t most = 0;
    std::size_t most_inputs = 0;
    bool multiplies = !adapters.empty();
    for (const Node& node : graph.nodes) {
      const std::size_t size = batch * node.operation->shape().size();
      outputs.emplace_back(node.in_place ? 0 : size);
      spaces.push_back(node.operation->make_space(batch));
      most_parameters = std::max(most_parameters, node.parameters);
      most_points = std::max(most_points, node.operation->shape().points());
      most_inputs = std::max(most_inputs, node.from.size());
      if (node.readers > 1) most = std::max(most, size);
      multiplies = multiplies || node.operation->needs_scratch();
    }
    GradientPlan plan = plan_gradients(graph.nodes, batch);
    gradient_buffers = std::move(plan.buffers);
    for (const std::size_t size : plan.sizes) gradients.emplace_back(size);
    inputs.reserve(most_inputs);
    dx.reserve(most_inputs);
    gradient = AlignedBuffer<float>(most_parameters);
    for (std::size_t i = 0; i < (most > 0 ? most_inputs : 0); ++i) spares.emplace_back(most);
    if (!adapters.empty()) {
      adapter = adapters.make_space(batch * most_points);
      merged = AlignedBuffer<float>(adapters.offset());
    }
    if (multiplies) scratch = AlignedBuffer<float>(kProductScratch);
  }

  std::size_t max_batch;
  std::vector<AlignedBuffer<float>> outputs;    // by node; empty if it is in place
  std::vector<std::size_t> gradient_buffers;    // by node
  std::vector<AlignedBuffer<float>> gradients;  // with respect to the outputs
  std::vector<std::unique_ptr<OperationSpace>> spaces;
  std::vector<char> written;        // by number of node: whether its gradient has been written in this pass
  std::vector<char> trained_below;  // whether it or a node that it depends on has trained parameters
  AlignedBuffer<float> gradient;    // of the parameters of one node
  std::vector<AlignedBuffer<float>> spares;  // by input: another gradient of a node that several others read
  std::vector<const float*> inputs;          // of one node
  std::vector<float*> dx;
  AdapterSpace adapter;
  AlignedBuffer<float> merged;   // the frozen parameters with their adapters
  AlignedBuffer<float> scratch;  // of products; empty if no layer needs it
};

// The adapters of a network in one backward pass.
class NetworkAdapters final : public AdapterRun {
 public:
  NetworkAdapters(const Adapters& adapters, std::span<const float> parameters, NetworkSpace& space)
      : adapters_(adapters), parameters_(parameters), space_(space) {}

  std::uint64_t add_gradient(std::size_t weight, const AdapterPass& pass, const Kernels& kernels,
                             float* gradient) const override {
    const std::size_t matrix = adapters_.find(weight);
    if (matrix == adapters_.matrices().size()) return 0;
    const std::size_t ranks = std::min(space_.ranks, adapters_.rank());
    adapters_.add_gradient(kernels, matrix, ranks, pass, parameters_, gradient, space_.adapter,
                           space_.scratch.data());
    return 2 * pass.rows * ranks * (adapters_.matrices()[matrix].in + adapters_.matrices()[matrix].out);
  }

 private:
  const Adapters& adapters_;
  std::span<const float> parameters_;
  NetworkSpace& space_;
};

// The samples of a pass, and the points of each that a text's length changes.
struct PassSize {
  std::size_t rows;
  std::size_t length;  // 0: not a text
  std::size_t points(const LayerShape& shape) const { return length > 0 ? length : shape.points(); }
};

class Network final : public LayeredModel {
 public:
  Network(Graph graph, std::shared_ptr<ParameterLayout> layout, Adapters adapters, const NetworkSpec& network,
          const ModelContext& context)
      : graph_(std::move(graph)),
        adapters_(std::move(adapters)),
        initialisation_(network.initialisation),
        text_(context.input.tokens),
        points_(text_ ? context.input.width : context.target.points) {
    layout_ = std::move(layout);
    input_size_ = text_ ? context.input.width : context.input.size();
    classes_ = context.target.outputs;
    for (const Node& node : graph_.nodes)
      if (!node.in_place) activations_ += 2 * node.operation->shape().size();
    for (std::size_t n = graph_.nodes.size(); n > 0 && head_ == 0; --n)
      if (graph_.nodes[n - 1].parameters > 0) head_ = n;
    if (!text_ && points_ == 1) representation_ = size_below_head();
  }

  std::size_t outputs_per_sample() const override { return points_; }
  std::size_t activations_per_sample() const override { return activations_; }
  std::vector<double> weight_uses() const override {
    std::vector<double> uses(graph_.layers + 1);  // the last are the adapters
    for (const Node& node : graph_.nodes) {
      if (node.parameters == 0) continue;
      uses[node.index] = node.operation->uses();
      uses.back() = std::max(uses.back(), uses[node.index]);
    }
    return uses;
  }
  const Adapters* adapters() const override { return adapters_.empty() ? nullptr : &adapters_; }
  std::size_t representation() const override { return representation_; }

  void initialise(std::span<float> parameters, const Rng& rng) const override {
    for (const Node& node : graph_.nodes)
      node.operation->initialise(parameters, rng.fork("init", node.index), initialisation_);
    if (!adapters_.empty()) adapters_.initialise(parameters, rng);
  }

  std::unique_ptr<Workspace> make_workspace(std::size_t max_batch) const override {
    auto workspace = std::make_unique<NetworkSpace>(graph_, adapters_, max_batch);
    workspace->trained = trained_rows(*layout_, Coverage::all(layout_->size()));
    return workspace;
  }

  void forward(std::span<const float> parameters, const Batch& batch, std::span<float> logits,
               Workspace& workspace) const override {
    auto& space = static_cast<NetworkSpace&>(workspace);
    const PassSize samples = samples_of(batch);
    run_forward(parameters, batch, samples, nullptr, space);
    std::copy_n(output(graph_.nodes.size(), space), size_of(graph_.nodes.size(), samples), logits.data());
  }

  void represent(std::span<const float> parameters, const Batch& batch, std::span<float> out,
                 Workspace& workspace) const override {
    auto& space = static_cast<NetworkSpace&>(workspace);
    const PassSize samples = samples_of(batch);
    run_forward(parameters, batch, samples, nullptr, space);
    std::copy_n(output(below_head(), space), samples.rows * representation_, out.data());
  }

 private:
  // The node that the last layer with parameters reads; 0: the input.
  std::size_t below_head() const { return head_ == 0 ? 0 : graph_.nodes[head_ - 1].from.front(); }
  // The size of that node's output, if layers below it can be trained.
  std::size_t size_below_head() const {
    const std::size_t below = below_head();
    const auto has_parameters = [](const Node& node) { return node.parameters > 0; };
    const auto first = graph_.nodes.begin();
    if (!std::any_of(first, first + static_cast<std::ptrdiff_t>(below), has_parameters)) return 0;
    return graph_.nodes[below - 1].operation->shape().size();
  }

  PassSize samples_of(const Batch& batch) const {
    if (!text_) return {batch.inputs.size() / input_size_, 0};
    const std::size_t length = batch.length > 0 ? batch.length : input_size_;
    return {batch.tokens.size() / length, length};
  }

  // Node n, or the one whose buffers it shares.
  std::size_t owner(std::size_t n) const {
    while (graph_.nodes[n - 1].in_place) n = graph_.nodes[n - 1].from[0];
    return n;
  }
  float* output(std::size_t n, NetworkSpace& space) const { return space.outputs[owner(n) - 1].data(); }
  float* gradient(std::size_t n, NetworkSpace& space) const {
    return space.gradients[space.gradient_buffers[n - 1]].data();
  }
  std::size_t size_of(std::size_t n, const PassSize& samples) const {
    const LayerShape& shape = graph_.nodes[n - 1].operation->shape();
    return samples.rows * samples.points(shape) * shape.channels;
  }

  // The activations that node n reads.
  void inputs_of(std::size_t n, const Batch& batch, NetworkSpace& space,
                 std::vector<const float*>& inputs) const {
    inputs.clear();
    for (const std::size_t from : graph_.nodes[n - 1].from)
      inputs.push_back(from == 0 ? batch.inputs.data() : output(from, space));
  }

  // `draws`: of this step; null: not for training.
  void run_forward(std::span<const float> parameters, const Batch& batch, const PassSize& samples,
                   const Rng* draws, NetworkSpace& space) const {
    FEDGE_CHECK(samples.rows <= space.max_batch, "the workspace was made for smaller batches");
    if (!adapters_.empty()) {
      adapters_.merge(kernels(), parameters, space.ranks, space.merged.data(), space.scratch.data());
      parameters = space.merged.span();
    }
    for (std::size_t n = 1; n <= graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n - 1];
      inputs_of(n, batch, space, space.inputs);
      const Rng own = draws != nullptr ? draws->fork("layer", n) : Rng(0);
      node.operation->forward(
          {kernels(), parameters, samples.rows, samples.points(node.operation->shape()), space.inputs,
           output(n, space), batch.tokens, draws != nullptr ? &own : nullptr, space.scratch.data()},
          space.spaces[n - 1].get());
    }
  }

  BatchLoss backpropagate(std::span<const float> parameters, const Batch& batch, float scale,
                          const Destination& destination, Workspace& workspace) const override {
    auto& space = static_cast<NetworkSpace&>(workspace);
    const PassSize samples = samples_of(batch);
    run_forward(parameters, batch, samples, &space.draws, space);
    const std::size_t last = graph_.nodes.size();
    const std::span<float> scores{gradient(last, space), size_of(last, samples)};
    std::copy_n(output(last, space), scores.size(), scores.data());
    const BatchLoss loss = loss_of(batch, scores, samples, scale, space);
    if (adapters_.empty()) {
      run_backward(parameters.data(), batch, samples, scale, destination, nullptr, space);
      return loss;
    }
    std::fill_n(destination.values + adapters_.offset(), adapters_.rank() * adapters_.row(), 0.0F);
    const NetworkAdapters adapters(adapters_, parameters, space);
    run_backward(space.merged.data(), batch, samples, scale, destination, &adapters, space);
    return loss;
  }

  BatchLoss loss_of(const Batch& batch, std::span<float> scores, const PassSize& samples, float scale,
                    NetworkSpace& space) const {
    static const LossSpec kUsual;
    if (!text_)
      return chosen_loss(kernels(), scores, batch, classes_, scale, space.loss ? *space.loss : kUsual,
                         space.loss_sums);
    TokenLoss loss(batch.targets, samples.length);
    loss.add(kernels(), scores, 0, classes_);
    if (scale != 1.0F)
      for (float& value : scores) value *= scale;
    return loss.result();
  }

  // Marks the nodes whose gradients are needed.
  void find_trained(const AdapterRun* adapters, NetworkSpace& space) const {
    space.trained_below[0] = 0;
    for (std::size_t n = 1; n <= graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n - 1];
      bool below = moves(node, adapters, space);
      for (const std::size_t from : node.from) below = below || space.trained_below[from] != 0;
      space.trained_below[n] = below ? 1 : 0;
    }
  }

  bool moves(const Node& node, const AdapterRun* adapters, const NetworkSpace& space) const {
    if (node.parameters == 0) return false;
    if (adapters != nullptr) return adapters_.find(node.operation->adapted()) < adapters_.matrices().size();
    return !space.trained.layers[node.index].either.empty();
  }

  void run_backward(const float* parameters, const Batch& batch, const PassSize& samples, float scale,
                    const Destination& destination, const AdapterRun* adapters, NetworkSpace& space) const {
    find_trained(adapters, space);
    std::ranges::fill(space.written, 0);
    for (std::size_t n = graph_.nodes.size(); n > 0; --n) {
      if (space.trained_below[n] == 0) continue;
      const Node& node = graph_.nodes[n - 1];
      inputs_of(n, batch, space, space.inputs);
      space.dx.clear();
      for (std::size_t i = 0; i < node.from.size(); ++i) space.dx.push_back(place_for(node, i, space));
      space.products += node.operation->backward(
          {kernels(), parameters, samples.rows, samples.points(node.operation->shape()), space.inputs,
           output(n, space), gradient(n, space), space.dx, moves(node, adapters, space), space.trained,
           destination, space.gradient.data(), batch.tokens, node.index, adapters, space.scratch.data()},
          space.spaces[n - 1].get());
      for (std::size_t i = 0; i < node.from.size(); ++i) collect(node, i, samples, space);
      if (n == head_ && space.contrast != nullptr && space.trained_below[below_head()] != 0)
        add_contrast_gradient(*space.contrast, output(below_head(), space), representation_, scale,
                              gradient(below_head(), space));
    }
  }

  // Where the gradient of a node's input number i is written: of a layer that was written already, to a spare
  // place.
  float* place_for(const Node& node, std::size_t i, NetworkSpace& space) const {
    const std::size_t from = node.from[i];
    if (space.trained_below[from] == 0) return nullptr;
    const bool again = space.written[from] != 0;
    space.written[from] = 1;
    return again ? space.spares[i].data() : gradient(from, space);
  }

  // Adds the gradient of a node's input number i to those that were written before.
  void collect(const Node& node, std::size_t i, const PassSize& samples, NetworkSpace& space) const {
    const std::size_t from = node.from[i];
    if (space.dx[i] != nullptr && space.dx[i] != gradient(from, space))
      kernels().axpy(1.0F, space.dx[i], gradient(from, space), size_of(from, samples));
  }

  Graph graph_;
  Adapters adapters_;
  Initialisation initialisation_;
  bool text_;
  std::size_t points_;
  std::size_t activations_ = 0;
  std::size_t head_ = 0;  // number of the last node with parameters
  std::size_t representation_ = 0;
};

// The adapters of the chosen dense layers, attached to the layout.
Result<Adapters> make_adapters(const AdapterSpec& spec, const Graph& graph, ParameterLayout& layout) {
  Adapters adapters(spec.rank, spec.scale);
  if (spec.rank == 0) return adapters;
  std::vector<std::string> known;
  for (const Node& node : graph.nodes)
    if (node.operation->adapted() != SIZE_MAX) known.push_back(node.name);
  if (known.empty())
    return invalid("model.adapter: the model has no dense layer, which alone can have adapters");
  FEDGE_TRY_VOID(check_targets(spec, known));
  std::vector<std::string> adapted;
  for (const std::string& name : known)
    if (spec.targets.empty() || std::ranges::find(spec.targets, name) != spec.targets.end())
      adapted.push_back(name + ".weight");
  adapters.attach(adapted, layout, graph.layers);
  return adapters;
}

}  // namespace

LayerShape layer_input(const InputShape& input) {
  using Rank = LayerShape::Rank;
  if (input.tokens) return {Rank::kSequence, 1, input.width, 1, true};
  if (input.height == 1 && input.channels == 1) return {.channels = input.width};
  if (input.height == 1) return {Rank::kSequence, 1, input.width, input.channels};
  return {Rank::kImage, input.height, input.width, input.channels};
}

Result<std::unique_ptr<Model>> make_network(const NetworkSpec& network, const ModelContext& context) {
  auto layout = std::make_shared<ParameterLayout>();
  FEDGE_TRY(graph, build_graph(network, context, *layout));
  FEDGE_TRY(adapters, make_adapters(context.spec.adapter, graph, *layout));
  return std::unique_ptr<Model>(
      std::make_unique<Network>(std::move(graph), std::move(layout), std::move(adapters), network, context));
}

}  // namespace fedge::learn
