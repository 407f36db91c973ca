// Compares the transformers of both families and their adapters with PyTorch: scores, loss and gradient of
// one batch, and ten steps of torch.optim.AdamW against Trainer. tests/reference/make_torch_language.py
// computes the numbers.
#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

#include "learn/model.h"
#include "learn/models/adapters.h"
#include "learn/trainer.h"
#include "tests/unit/learn/torch_numbers.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

struct TransformerCase {
  std::string name;
  std::size_t sequences;
  std::size_t vocabulary;
  std::size_t context;
  ModelSpec spec;
  std::size_t ranks = 0;  // active ranks of the adapters
};

std::vector<TransformerCase> transformer_cases() {
  ModelSpec small;
  small.kind = "transformer";
  small.language.layers = 2;
  small.language.width = 24;
  small.language.heads = 3;
  ModelSpec untied = small;
  untied.language.layers = 3;
  untied.language.width = 48;
  untied.language.heads = 4;
  untied.language.tied = false;
  ModelSpec adapted = small;
  adapted.adapter.rank = 5;
  ModelSpec prefix = adapted;
  prefix.adapter.targets = {"q", "v", "up"};
  ModelSpec llama = small;
  llama.kind = "llama";
  llama.language.mlp_width = 40;
  ModelSpec shared = llama;
  shared.language = {.layers = 3,
                     .width = 64,
                     .heads = 8,
                     .tied = false,
                     .kv_heads = 2,
                     .mlp_width = 88,
                     .epsilon = 1e-6F,
                     .rotary = {.theta = 500}};
  ModelSpec llama_adapted = llama;
  llama_adapted.language.heads = 6;
  llama_adapted.language.kv_heads = 3;
  llama_adapted.adapter.rank = 5;
  llama_adapted.adapter.targets = {"q", "k", "gate", "down"};
  return {{"llama", 5, 37, 12, llama},
          {"llama_shared", 9, 96, 64, shared},
          {"llama_adapter", 5, 37, 12, llama_adapted, 3},
          {"transformer", 5, 37, 12, small},
          {"transformer_untied", 10, 96, 64, untied},
          {"transformer_adapter", 5, 37, 12, adapted, 5},
          {"transformer_prefix", 5, 37, 12, prefix, 3}};
}

struct PreparedTransformer {
  explicit PreparedTransformer(const TransformerCase& c) : expected(learn::test::read_blocks(c.name)) {
    const InputShape input{1, c.context, 1, true};
    auto made = make_model(c.spec, input, c.vocabulary);
    REQUIRE(made.has_value());
    model = std::move(made).value();
    const ParameterLayout& layout = *model->layout();
    parameters.resize(layout.size());
    REQUIRE(parameters.size() == static_cast<std::size_t>(expected.at("size").at(0)));
    for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
      const TensorInfo& tensor = layout.tensors()[t];
      const auto values = std::span(parameters).subspan(tensor.offset, tensor.size);
      const bool matrix = tensor.shape.size() == 2 && tensor.order == TensorOrder::kRowMajor;
      learn::test::fill_hashed(values, static_cast<std::uint32_t>(t), matrix ? 0.25F : 0.125F);
      if (tensor.name.find("norm") != std::string::npos && tensor.name.ends_with(".weight"))
        for (float& value : values) value += 1;
    }
    trained = {model->adapters() != nullptr ? model->adapters()->offset() : 0, layout.size()};
    stride = static_cast<std::size_t>(expected.at("stride").at(0));
    fill_data(c, input);
  }

  void fill_data(const TransformerCase& c, const InputShape& input) {
    data.shape = input;
    data.classes = 1;
    data.text.vocabulary = c.vocabulary;
    const std::size_t count = c.sequences * c.context;
    for (std::size_t i = 0; i <= count; ++i)
      data.text.tokens.push_back(static_cast<Token>((i * 7 + i * i / 3) % c.vocabulary));
    for (std::size_t i = 0; i < c.sequences; ++i) {
      const std::size_t targets = i + 1 == c.sequences ? c.context - 4 : c.context;
      data.text.windows.push_back(
          {static_cast<std::uint32_t>(i * c.context), static_cast<std::uint32_t>(targets)});
      data.labels.push_back(0);
      samples.push_back(static_cast<std::uint32_t>(i));
    }
    buffer = std::make_unique<BatchBuffer>(c.context, true, c.sequences);
  }

  Batch batch() const { return buffer->read(data, samples); }
  std::span<const float> part(std::span<const float> whole) const {
    return whole.subspan(trained.begin, trained.size());
  }

  learn::test::Blocks expected;
  std::unique_ptr<Model> model;
  std::vector<float> parameters;
  Range trained;
  std::size_t stride = 1;
  Dataset data;
  std::vector<std::uint32_t> samples;
  std::unique_ptr<BatchBuffer> buffer;
};

constexpr std::size_t kTransformerSteps = 10;

TrainingSpec adam_spec(std::size_t sequences) {
  TrainingSpec spec;
  spec.optimizer = OptimizerKind::kAdamW;
  spec.learning_rate = 3e-3F;
  spec.weight_decay = 0.1F;
  spec.adam = {0.9F, 0.95F, 1e-5F};
  spec.batch_size = sequences;  // one step an epoch: the order matters only for rounding
  spec.local_epochs = kTransformerSteps;
  return spec;
}

// Sums of up to 192 products over several layers, each with its own rounding; measured: 1e-6.
constexpr double kTransformerTolerance = 5e-6;
// Adam divides a gradient by its own magnitude: the rounding of small gradients weighs more.
constexpr double kStepTolerance = 5e-5;

}  // namespace

TEST_CASE("transformer: scores, loss and every gradient are PyTorch's, with adapters and a prefix of them") {
  for (const TransformerCase& c : transformer_cases()) {
    CAPTURE(c.name);
    const PreparedTransformer p(c);
    const auto workspace = p.model->make_workspace(c.sequences);
    if (c.ranks > 0) workspace->ranks = c.ranks;
    std::vector<float> scores(c.sequences * c.context * c.vocabulary);
    p.model->forward(p.parameters, p.batch(), scores, *workspace);
    CHECK(learn::test::difference(scores, p.expected.at("scores"), p.stride) <= kTransformerTolerance);

    std::vector<float> gradient(p.parameters.size());
    const float loss = p.model->loss_and_gradient(p.parameters, p.batch(), gradient, *workspace).mean;
    CHECK(static_cast<double>(loss) ==
          doctest::Approx(p.expected.at("losses").at(0)).epsilon(kTransformerTolerance));
    CHECK(learn::test::difference(p.part(gradient), p.expected.at("gradient"), p.stride) <=
          kTransformerTolerance);
    double squares = 0;
    for (const float g : p.part(gradient)) squares += static_cast<double>(g) * static_cast<double>(g);
    CHECK(std::sqrt(squares) ==
          doctest::Approx(p.expected.at("gradient_norm").at(0)).epsilon(kTransformerTolerance));
  }
}

TEST_CASE("transformer: ten steps of AdamW are torch.optim.AdamW's, of the model and of adapters") {
  for (const TransformerCase& c : transformer_cases()) {
    if (c.ranks < c.spec.adapter.rank) continue;  // the trainer's tests cover prefixes
    CAPTURE(c.name);
    const PreparedTransformer p(c);
    const TrainingSpec spec = adam_spec(c.sequences);
    std::vector<float> trained = p.parameters;
    const Coverage moved = Coverage::of({p.trained});
    const TrainingResult result =
        Trainer(*p.model, spec).train(trained, p.data, p.samples, Rng(1), {.coverage = &moved});
    CHECK(result.steps == kTransformerSteps);
    const auto& losses = p.expected.at("losses");
    CHECK(result.mean_loss ==
          doctest::Approx(std::accumulate(losses.begin(), losses.end(), 0.0) / kTransformerSteps)
              .epsilon(kTransformerTolerance));
    CHECK(learn::test::difference(p.part(trained), p.expected.at("trained"), p.stride) <= kStepTolerance);
    CHECK(std::equal(trained.begin(), trained.begin() + static_cast<std::ptrdiff_t>(p.trained.begin),
                     p.parameters.begin()));
  }
}
