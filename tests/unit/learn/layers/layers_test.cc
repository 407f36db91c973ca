// Every layer against a slow interpreter in double precision: outputs directly, gradients by central
// differences of the interpreter's loss. And layers that do not fit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/platform/files.h"
#include "core/rng.h"
#include "learn/model.h"
#include "tests/unit/learn/layers/reference_layers.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

Result<ModelSpec> read_model(const std::string& layers) {
  FEDGE_TRY(document, config::parse_toml("[model]\nkind = \"layers\"\nlayer = [" + layers + "]", "run.toml"));
  config::Reader root(document.root, "", document.name);
  const TaskSpec spec = read_task(root);
  FEDGE_TRY_VOID(root.finish());
  return spec.model;
}

Result<std::unique_ptr<Model>> make(const std::string& layers, const InputShape& input,
                                    const TargetShape& target) {
  FEDGE_TRY(spec, read_model(layers));
  return make_model(spec, input, target);
}

struct LayerCase {
  std::string layers;
  InputShape input;
  TargetShape target{.outputs = 3};
  std::size_t rows = 3;
};

const std::string kPointHead = R"({kind = "global_average_pool"}, {kind = "dense"})";

// Shapes with every remainder of a tile; numbers of channels around the vectors' lengths.
const std::vector<LayerCase>& layer_cases() {
  constexpr InputShape kVector{1, 7, 1}, kArray{12, 5, 1}, kImage{6, 8, 3}, kText{1, 6, 1, true};
  static const std::vector<LayerCase> all = {
      {R"({kind = "dense", units = 9, activation = "relu"}, {kind = "dense", bias = false})", kVector},
      {R"({kind = "dense", units = 9, activation = "leaky_relu"}, {kind = "dense", units = 4, activation = "gelu"},
          {kind = "dense", units = 5, activation = "silu"}, {kind = "dense", units = 6, activation = "sigmoid"},
          {kind = "dense", units = 7, activation = "tanh"}, {kind = "layer_norm"}, {kind = "dense"})",
       kVector},
      {R"({kind = "leaky_relu", slope = 0.3}, {kind = "dense", units = 4}, {kind = "silu"}, {kind = "gelu"},
          {kind = "tanh"}, {kind = "sigmoid"}, {kind = "relu"}, {kind = "dense"}, {kind = "sigmoid"})",
       kVector},
      {R"({kind = "conv1d", units = 4, kernel = 3}, )" + kPointHead, kArray},
      {R"({kind = "conv1d", units = 17, kernel = 4, stride = 2, activation = "relu"},
          {kind = "conv1d", units = 6, kernel = 3, padding = "valid", bias = false},)" +
           kPointHead,
       kArray},
      {R"({kind = "conv1d", units = 10, kernel = 5, groups = 5}, {kind = "conv1d", units = 4, groups = 2},)" +
           kPointHead,
       kArray},
      {R"({kind = "conv1d", units = 5}, {kind = "conv1d_transpose", units = 3, kernel = 3, stride = 2},
          {kind = "upsample", factor = 3}, {kind = "dense", units = 4}, {kind = "flatten"}, {kind = "dense"})",
       kArray},
      {R"({kind = "conv1d", units = 5}, {kind = "upsample", factor = 3, method = "linear"}, {kind = "flatten"},
          {kind = "dense"})",
       kArray},
      {R"({kind = "conv2d", units = 3}, {kind = "upsample", method = "linear"}, {kind = "flatten"},
          {kind = "dense"})",
       kImage},
      {R"({kind = "conv2d", units = 5}, )" + kPointHead, kImage},
      {R"({kind = "conv2d", units = 33, kernel = 5, stride = 2, bias = false}, {kind = "group_norm", groups = 3},
          {kind = "conv2d", units = 6, kernel = 2, padding = "valid", stride = 2},)" +
           kPointHead,
       kImage},
      {R"({kind = "conv2d", units = 6, kernel = 3, groups = 3, activation = "relu"},
          {kind = "conv2d", units = 6, kernel = 3, groups = 6}, {kind = "conv2d", units = 4, kernel = 1},)" +
           kPointHead,
       kImage},
      {R"({kind = "conv2d", units = 4, kernel = 4, stride = 3}, {kind = "conv2d_transpose", units = 5},
          {kind = "conv2d_transpose", units = 3, kernel = 3, stride = 1}, {kind = "flatten"}, {kind = "dense"})",
       kImage},
      {R"({kind = "conv2d", units = 5, kernel = 3, padding = "valid", activation = "relu"}, {kind = "max_pool"},
          {kind = "flatten"}, {kind = "dense"})",
       {8, 6, 2}},
      {R"({kind = "max_pool", size = 3, stride = 2}, {kind = "average_pool"}, {kind = "flatten"},
          {kind = "dense"})",
       {8, 9, 2}},
      {R"({kind = "conv1d", units = 3}, {kind = "max_pool", size = 3, stride = 1}, {kind = "average_pool", size = 4},
          {kind = "global_max_pool"}, {kind = "dense"})",
       kArray},
      {R"({kind = "conv2d", units = 4, name = "a", activation = "relu"}, {kind = "conv2d", units = 4},
          {kind = "add", from = ["conv1", "a", "a"]}, {kind = "conv2d", units = 4, name = "b"},
          {kind = "concat", from = ["b", "a", "input"]}, {kind = "take", first = 2, count = 7},)" +
           kPointHead,
       kImage},
      {R"({kind = "conv2d", units = 4, name = "a", activation = "relu"}, {kind = "max_pool"}, {kind = "upsample"},
          {kind = "add", from = ["upsample1", "a"], name = "b"}, {kind = "tanh"},
          {kind = "add", from = ["tanh1", "b"]},)" +
           kPointHead,
       kImage},
      {R"({kind = "conv2d", units = 4, name = "a"}, {kind = "conv2d", units = 1, name = "b", activation = "sigmoid"},
          {kind = "multiply", from = ["a", "b"], name = "c"}, {kind = "multiply", from = ["c", "a"]},)" +
           kPointHead,
       kImage},
      {R"({kind = "conv1d", units = 4, name = "fine"}, {kind = "average_pool"}, {kind = "conv1d", units = 6},
          {kind = "upsample", name = "up"}, {kind = "attention_gate", units = 5, from = ["fine", "up"]},
          {kind = "concat", from = ["attention_gate1", "up"]}, {kind = "conv1d", units = 2, kernel = 1})",
       kArray,
       {TargetKind::kPoints, 2, 12}},
      {R"({kind = "conv2d", units = 4}, {kind = "layer_norm"}, {kind = "conv2d", kernel = 1})",
       {4, 4, 1},
       {TargetKind::kPoints, 3, 16}},
      {R"({kind = "lstm", units = 5}, {kind = "lstm", units = 17, returns = "last"}, {kind = "dense"})",
       kArray},
      {R"({kind = "gru", units = 5}, {kind = "gru", units = 17, returns = "last"}, {kind = "dense"})",
       kArray},
      {R"({kind = "gru", units = 5, name = "forward"}, {kind = "reverse", from = ["input"]}, {kind = "gru", units = 4},
          {kind = "reverse", name = "backward"}, {kind = "concat", from = ["forward", "backward"]},
          {kind = "gru", units = 3, returns = "last"}, {kind = "dense"})",
       kArray},
      {R"({kind = "lstm", units = 2, returns = "last"}, {kind = "dense"})", {1, 5, 1}},
      {R"({kind = "embedding", units = 4}, {kind = "lstm", units = 6}, {kind = "dropout", rate = 0},
          {kind = "gru", units = 5}, {kind = "layer_norm"}, {kind = "dense"})",
       kText,
       {.outputs = 9}},
      {R"({kind = "dense", units = 4, activation = "tanh"}, {kind = "dense"})",
       kVector,
       {TargetKind::kLabels, 4}},
      {R"({kind = "dense", units = 4, activation = "tanh"}, {kind = "dense"})",
       kVector,
       {TargetKind::kValues, 2}},
  };
  return all;
}

// A model with random parameters and a random batch; the interpreter gets the same values as doubles.
struct LayerSample {
  explicit LayerSample(const LayerCase& of) : c(of) {
    auto made = make(c.layers, c.input, c.target);
    REQUIRE_MESSAGE(made.has_value(), made.error().message);
    model = std::move(made).value();
    Rng rng = Rng(5).fork(c.layers);
    parameters.resize(model->layout()->size());
    model->initialise(parameters, rng);
    // Gains begin at 1; other values are wider than the initialisation, so that every curve bends.
    for (float& w : parameters) w += static_cast<float>(rng.normal() * 0.3);
    const bool text = c.input.tokens;
    inputs.resize(text ? 0 : c.rows * c.input.size());
    for (float& x : inputs) x = static_cast<float>(rng.normal());
    for (std::size_t i = 0; i < (text ? c.rows * c.input.width : 0); ++i) {
      tokens.push_back(static_cast<Token>(rng.below(c.target.outputs)));
      targets.push_back(i % 5 == 4 ? kNoToken : static_cast<Token>(rng.below(c.target.outputs)));
    }
    labels.resize(text ? 0 : c.rows * c.target.points);
    for (Label& label : labels) label = static_cast<Label>(rng.below(c.target.outputs));
    values.resize(c.target.has_values() ? c.rows * c.target.outputs : 0);
    for (float& value : values)
      value = c.target.kind == TargetKind::kLabels ? static_cast<float>(rng.below(2))
                                                   : static_cast<float>(rng.normal());
  }

  Batch batch() const {
    Batch all{.inputs = inputs, .labels = labels, .tokens = tokens, .targets = targets};
    all.samples = c.rows;
    all.kind = c.target.kind;
    all.values = values;
    return all;
  }

  learn::test::Doubles scores(std::span<const double> weights) const {
    learn::test::ReferenceNetwork network(
        model->spec().network, c.input.tokens || c.target.points > 1 ? c.target.outputs : c.target.size());
    learn::test::Doubles all;
    for (std::size_t r = 0; r < c.rows; ++r) {
      learn::test::Activation x{c.input.height, c.input.width, c.input.channels};
      x.flat = c.input.height == 1 && c.input.channels == 1;
      if (x.flat) std::swap(x.width, x.channels);
      x.image = c.input.height > 1;
      const std::size_t size = c.input.size();
      std::vector<std::size_t> own;
      if (c.input.tokens)
        own.assign(tokens.begin() + static_cast<std::ptrdiff_t>(r * size),
                   tokens.begin() + static_cast<std::ptrdiff_t>((r + 1) * size));
      else
        x.values.assign(inputs.begin() + static_cast<std::ptrdiff_t>(r * size),
                        inputs.begin() + static_cast<std::ptrdiff_t>((r + 1) * size));
      for (const double score : network.run(x, weights, own)) all.push_back(score);
    }
    return all;
  }

  double loss(std::span<const double> weights) const {
    const learn::test::Doubles all = scores(weights);
    const std::size_t n = c.target.outputs;
    double total = 0, count = 0;
    for (std::size_t row = 0; row < all.size() / n; ++row) {
      const std::span<const double> own = std::span(all).subspan(row * n, n);
      if (c.target.has_values()) {
        for (std::size_t i = 0; i < n; ++i) {
          const double value = static_cast<double>(values[row * n + i]);
          total += c.target.kind == TargetKind::kValues ? (own[i] - value) * (own[i] - value)
                                                        : std::log1p(std::exp(own[i])) - value * own[i];
          ++count;
        }
        continue;
      }
      const std::size_t target = c.input.tokens ? targets[row] : labels[row];
      if (c.input.tokens && target == kNoToken) continue;
      double sum = 0;
      for (const double score : own) sum += std::exp(score);
      total += std::log(sum) - own[target];
      ++count;
    }
    return total / count;
  }

  const LayerCase& c;
  std::unique_ptr<Model> model;
  std::vector<float> parameters;
  std::vector<float> inputs;
  std::vector<Label> labels;
  std::vector<float> values;
  std::vector<Token> tokens;
  std::vector<Token> targets;
};

learn::test::Doubles as_doubles(std::span<const float> values) { return {values.begin(), values.end()}; }

double worst(std::span<const float> actual, std::span<const double> exact) {
  REQUIRE(actual.size() == exact.size());
  double most = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double difference = std::abs(static_cast<double>(actual[i]) - exact[i]) / (1 + std::abs(exact[i]));
    most = std::isnan(difference) ? 1e300 : std::max(most, difference);
  }
  return most;
}

// Checks that a list is refused, and that the message has these words.
void check_refused(const std::string& layers, const std::vector<std::string>& words,
                   InputShape input = {6, 8, 3}, TargetShape target = {.outputs = 3}) {
  CAPTURE(layers);
  const auto made = make(layers, input, target);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == ErrorCode::kInvalid);
  for (const std::string& word : words)
    CHECK_MESSAGE(made.error().message.find(word) != std::string::npos, made.error().message);
}

}  // namespace

TEST_CASE("layers: the outputs are those of the definitions") {
  for (const LayerCase& c : layer_cases()) {
    CAPTURE(c.layers);
    const LayerSample s(c);
    const auto workspace = s.model->make_workspace(c.rows + 1);
    std::vector<float> scores(c.rows * s.model->outputs_per_sample() * s.model->classes());
    s.model->forward(s.parameters, s.batch(), scores, *workspace);
    CHECK(worst(scores, s.scores(as_doubles(s.parameters))) <= 1e-5);
  }
}

TEST_CASE("layers: gradients are the central differences of the definitions' loss") {
  for (const LayerCase& c : layer_cases()) {
    CAPTURE(c.layers);
    const LayerSample s(c);
    const auto workspace = s.model->make_workspace(c.rows);
    std::vector<float> gradient(s.parameters.size(), std::nanf(""));
    const BatchLoss loss = s.model->loss_and_gradient(s.parameters, s.batch(), gradient, *workspace);
    learn::test::Doubles weights = as_doubles(s.parameters);
    CHECK(static_cast<double>(loss.mean) == doctest::Approx(s.loss(weights)).epsilon(1e-5));
    // About 150 of the parameters, among them the first and last of each tensor.
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < weights.size(); i += std::max<std::size_t>(1, weights.size() / 150))
      places.push_back(i);
    for (const TensorInfo& tensor : s.model->layout()->tensors()) {
      places.push_back(tensor.offset);
      places.push_back(tensor.offset + tensor.size - 1);
    }
    for (const std::size_t i : places) {
      CAPTURE(s.model->layout()->describe(i));
      const double centre = weights[i];
      weights[i] = centre + 1e-5;
      const double above = s.loss(weights);
      weights[i] = centre - 1e-5;
      const double slope = (above - s.loss(weights)) / 2e-5;
      weights[i] = centre;
      CHECK(std::abs(static_cast<double>(gradient[i]) - slope) <= 2e-5 * (1 + std::abs(slope)));
    }
    CHECK(std::none_of(gradient.begin(), gradient.end(), [](float g) { return std::isnan(g); }));
  }
}

TEST_CASE("layers: a step in place is the step along the gradient, and a workspace has no memory") {
  for (const LayerCase& c : layer_cases()) {
    CAPTURE(c.layers);
    const LayerSample s(c);
    const auto workspace = s.model->make_workspace(c.rows);
    std::vector<float> gradient(s.parameters.size()), again(s.parameters.size());
    s.model->loss_and_gradient(s.parameters, s.batch(), gradient, *workspace);
    std::vector<float> stepped = s.parameters;
    s.model->sgd_step(stepped, s.batch(), 0.5F, 0.1F, *workspace);
    learn::test::Doubles expected;
    for (std::size_t i = 0; i < stepped.size(); ++i)
      expected.push_back(0.95 * static_cast<double>(s.parameters[i]) -
                         0.5 * static_cast<double>(gradient[i]));
    CHECK(worst(stepped, expected) <= 1e-6);
    s.model->loss_and_gradient(s.parameters, s.batch(), again, *workspace);
    CHECK(again == gradient);
    // Any smaller batch, in a larger workspace: its rows do not depend on each other.
    const auto roomy = s.model->make_workspace(c.rows + 5);
    s.model->loss_and_gradient(s.parameters, s.batch(), again, *roomy);
    CHECK(again == gradient);
  }
}

TEST_CASE("layers: training some tensors moves nothing else, and they get the bits of the whole") {
  for (const LayerCase& c : layer_cases()) {
    CAPTURE(c.layers);
    const LayerSample s(c);
    const auto workspace = s.model->make_workspace(c.rows);
    const ParameterLayout& layout = *s.model->layout();
    std::vector<float> whole(s.parameters.size());
    s.model->loss_and_gradient(s.parameters, s.batch(), whole, *workspace);
    for (const TensorInfo& tensor : layout.tensors()) {
      CAPTURE(tensor.name);
      workspace->trained = trained_rows(layout, Coverage::of({{tensor.offset, tensor.offset + tensor.size}}));
      std::vector<float> part(s.parameters.size(), 77.0F);
      s.model->loss_and_gradient(s.parameters, s.batch(), part, *workspace);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < part.size(); ++i) {
        const bool in = i >= tensor.offset && i < tensor.offset + tensor.size;
        if (part[i] != (in ? whole[i] : 77.0F)) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("layers: dropout is a function of the step, keeps the mean, and is absent outside training") {
  const LayerCase c{
      R"({kind = "dropout", rate = 0.25}, {kind = "dense", bias = false})", {1, 4000, 1}, {.outputs = 1}, 2};
  auto made = make(c.layers, c.input, {TargetKind::kValues, 1});
  REQUIRE(made.has_value());
  const Model& model = **made;
  const auto workspace = model.make_workspace(2);
  const std::vector<float> parameters(4000, 1.0F), inputs(8000, 1.0F), values(2, 0.0F);
  Batch batch{.inputs = inputs};
  batch.samples = 2;
  batch.kind = TargetKind::kValues;
  batch.values = values;
  std::vector<float> scores(2);
  model.forward(parameters, batch, scores, *workspace);
  CHECK(scores == std::vector<float>{4000.0F, 4000.0F});
  // The gradient of an input's weight is 0 where both samples dropped it.
  const auto gradient_at = [&](std::uint64_t step) {
    workspace->draws = Rng(3).fork("dropout", step);
    std::vector<float> gradient(4000);
    model.loss_and_gradient(parameters, batch, gradient, *workspace);
    return gradient;
  };
  const auto first = gradient_at(1), second = gradient_at(2);
  CHECK(gradient_at(1) == first);
  CHECK(first != second);
  const auto zeros = std::count(first.begin(), first.end(), 0.0F);
  CHECK(zeros > 4000 * 0.0625 - 60);  // four standard deviations of a binomial
  CHECK(zeros < 4000 * 0.0625 + 60);
}

TEST_CASE("layers: what does not fit is refused at its layer, with the shapes") {
  check_refused(R"({kind = "dense"})", {"dense1", "6x8x3", "flatten"});
  check_refused(R"({kind = "flatten"}, {kind = "dense", units = 5})", {"dense1", "gives 5", "needs 3"});
  check_refused(R"({kind = "flatten"}, {kind = "conv2d", units = 2})", {"conv1", "images", "144"});
  check_refused(R"({kind = "conv2d", units = 4, kernel = 7, padding = "valid"})",
                {"conv1", "kernel of 7", "6x8x3"});
  check_refused(R"({kind = "max_pool", size = 9})", {"max_pool1", "window of 9", "6x8x3"});
  check_refused(R"({kind = "conv2d", units = 4, groups = 2})",
                {"conv1", "groups = 2", "3 input", "4 output"});
  check_refused(R"({kind = "group_norm", groups = 2})", {"group_norm1", "groups = 2", "3 channels"});
  check_refused(R"({kind = "conv2d", units = 4}, {kind = "add", from = ["conv1", "input"]})",
                {"add1", "6x8x4", "6x8x3"});
  check_refused(R"({kind = "conv2d", units = 4, stride = 2}, {kind = "concat", from = ["conv1", "input"]})",
                {"concat1", "3x4x4", "6x8x3"});
  check_refused(R"({kind = "add"}, {kind = "dense"})", {"add1", "2 or more", "not 1"});
  check_refused(R"({kind = "take", first = 2, count = 2}, {kind = "dense"})",
                {"take1", "channels 2 to 3", "has 3"});
  check_refused(R"({kind = "embedding", units = 2}, {kind = "dense"})", {"embedding1", "tokens of a text"});
  check_refused(R"({kind = "relu"})", {"no layer has parameters"});
}

TEST_CASE("layers: a layer reads earlier ones only, each name once, and no layer is forgotten") {
  check_refused(
      R"({kind = "conv2d", units = 4, name = "a", from = ["b"]}, {kind = "conv2d", units = 4, name = "b"})",
      {"a reads \"b\"", "not a layer before it"});
  check_refused(R"({kind = "conv2d", units = 4, name = "a", from = ["a"]})", {"a reads \"a\""});
  check_refused(R"({kind = "conv2d", units = 4, name = "a"}, {kind = "conv2d", units = 4, name = "a"})",
                {"two layers", "\"a\""});
  check_refused(R"({kind = "conv2d", units = 4}, {kind = "flatten", from = ["input"]}, {kind = "dense"})",
                {"no layer reads conv1"});
  check_refused(R"({kind = "conv2d", from = ["input", "input"]})", {"reads one layer", "names 2"});
  check_refused(R"({kind = "reverse"}, {kind = "flatten"}, {kind = "dense"})",
                {"reverse1", "sequence", "6x8x3"});
  check_refused(R"({kind = "attention_gate", units = 2})", {"attention_gate1", "two layers"});
}

TEST_CASE("layers: no layer of a text's model can read later tokens") {
  const InputShape text{1, 6, 1, true};
  const std::string before = R"({kind = "embedding", units = 4}, )";
  const TargetShape target{.outputs = 9};
  for (const char* layer :
       {R"({kind = "conv1d", units = 2})", R"({kind = "max_pool"})", R"({kind = "flatten"})",
        R"({kind = "group_norm"})", R"({kind = "global_average_pool"})", R"({kind = "upsample"})",
        R"({kind = "reverse"})"})
    check_refused(before + layer + R"(, {kind = "dense"})", {"tokens that it has to predict"}, text, target);
  check_refused(before + R"({kind = "lstm", units = 3, returns = "last"}, {kind = "dense"})",
                {"each token needs one"}, text, target);
  check_refused(R"({kind = "lstm", units = 3}, {kind = "dense"})", {"put an embedding before it"}, text,
                target);
}

TEST_CASE("layers: absurd sizes are refused before memory is taken") {
  check_refused(R"({kind = "flatten"}, {kind = "dense", units = 65536}, {kind = "dense", units = 65536},
                   {kind = "dense"})",
                {"dense2", "2^32 parameters"});
  check_refused(R"({kind = "conv2d", units = 65536}, {kind = "global_average_pool"}, {kind = "dense"})",
                {"conv1", "2^28 numbers"}, {100, 100, 3});
  check_refused(
      R"({kind = "upsample", factor = 64}, {kind = "upsample", factor = 64}, {kind = "upsample", factor = 64},
                   {kind = "global_average_pool"}, {kind = "dense"})",
      {"upsample2", "2^28 numbers"});
}

TEST_CASE("layers: the ready-made lists fit their data, and have as many parameters as the same in PyTorch") {
  struct Example {
    std::string file;
    InputShape input;
    std::size_t outputs;
    std::size_t parameters;
  };
  for (const Example& e :
       {Example{"lenet", {28, 28, 1}, 10, 61'706}, Example{"cifar_cnn", {32, 32, 3}, 10, 1'626'442},
        Example{"resnet20", {32, 32, 3}, 10, 272'474}, Example{"activity_cnn", {104, 6, 1}, 5, 9'797},
        Example{"shakespeare_lstm", {1, 80, 1, true}, 96, 824'160},
        Example{"tabular_mlp", {1, 12, 1}, 2, 400}}) {
    CAPTURE(e.file);
    const auto text = read_file(FEDGE_SOURCE_DIR "/examples/models/" + e.file + ".toml", 1 << 16);
    REQUIRE(text.has_value());
    const auto document = config::parse_toml(*text, e.file);
    REQUIRE_MESSAGE(document.has_value(), document.error().message);
    config::Reader root(document->root, "", document->name);
    const TaskSpec spec = read_task(root);
    for (const char* other : {"run", "sampling", "strategy"}) root.ignore(other);
    const auto read = root.finish();
    REQUIRE_MESSAGE(read.has_value(), read.error().message);
    const auto made = make_model(spec.model, e.input, e.outputs);
    REQUIRE_MESSAGE(made.has_value(), made.error().message);
    CHECK((*made)->layout()->size() == e.parameters);
  }
}

TEST_CASE("layers: errors of the run file name the layer's key") {
  const auto refused = [](const std::string& layers, const std::string& words) {
    const auto spec = read_model(layers);
    REQUIRE_FALSE(spec.has_value());
    CHECK_MESSAGE(spec.error().message.find(words) != std::string::npos, spec.error().message);
  };
  refused("", "model.layer");
  refused(R"({kind = "dense"}, {kind = "conv3d"})", "model.layer[1].kind");
  refused(R"({kind = "dense", kernel = 3})", "model.layer[0].kernel");
  refused(R"({kind = "dense", name = "input"})", "model.layer[0].name");
  refused(R"({kind = "relu", activation = "tanh"})", "model.layer[0].activation");
  refused(R"({kind = "dropout", rate = 1.0})", "model.layer[0].rate");
}
