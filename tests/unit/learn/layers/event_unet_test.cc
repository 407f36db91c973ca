// The attention U-Net of examples/models/event_unet.toml. The numbered invariants are those of the
// specification of event screening.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <regex>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/platform/files.h"
#include "core/rng.h"
#include "learn/models/loss.h"
#include "learn/task.h"
#include "learn/trainer.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kUnetSteps = 256;
constexpr std::size_t kUnetClasses = 5;

std::string unet_file() {
  const auto text = read_file(FEDGE_SOURCE_DIR "/examples/models/event_unet.toml", 1 << 16);
  REQUIRE(text);
  return *text;
}

std::string with_replaced(const std::string& text, const std::string& pattern, const std::string& by) {
  const std::regex expression(pattern);
  REQUIRE(std::regex_search(text, expression));
  return std::regex_replace(text, expression, by);
}

TaskSpec unet_task(const std::string& text) {
  auto document = config::parse_toml(text, "run.toml");
  REQUIRE(document);
  for (const char* other : {"run", "sampling"}) document->root.erase(other);
  config::Reader root(document->root, "", document->name);
  const TaskSpec spec = read_task(root);
  const auto read = root.finish();
  REQUIRE_MESSAGE(read, read.error().message);
  return spec;
}

std::unique_ptr<Model> unet_of(const std::string& text, std::size_t steps = kUnetSteps) {
  auto made = make_model(unet_task(text).model, {steps, 2, 1}, {TargetKind::kPoints, kUnetClasses, steps});
  REQUIRE_MESSAGE(made, made.error().message);
  return std::move(*made);
}

std::vector<float> initial_unet(const Model& model) {
  std::vector<float> parameters(model.layout()->size());
  model.initialise(parameters, Rng(3));
  return parameters;
}

// Two samples of noise with random classes.
Dataset noisy_windows(std::size_t samples, std::uint64_t seed, std::size_t steps = kUnetSteps) {
  Rng rng(seed);
  Dataset data{
      .shape = {steps, 2, 1}, .classes = kUnetClasses, .floats = AlignedBuffer<float>(samples * steps * 2)};
  for (float& value : data.floats.span()) value = static_cast<float>(rng.normal());
  data.targets.shape = {TargetKind::kPoints, kUnetClasses, steps};
  for (std::size_t i = 0; i < samples * steps; ++i)
    data.targets.points.push_back(static_cast<Label>(i / 40 % 3 == 0 ? rng.below(kUnetClasses) : 0));
  data.labels.assign(samples, 0);
  return data;
}

std::vector<float> unet_outputs(const Model& model, const std::vector<float>& parameters,
                                const Dataset& data) {
  std::vector<float> scores(data.size() * model.outputs_per_sample() * model.classes());
  std::vector<std::uint32_t> samples(data.size());
  std::iota(samples.begin(), samples.end(), 0U);
  BatchBuffer buffer(data.shape.size(), false, data.size());
  const auto space = model.make_workspace(data.size());
  model.forward(parameters, buffer.read(data, samples), scores, *space);
  return scores;
}

// The loss of logits that are sure of these classes.
float sure_loss(const std::vector<Label>& truth, const std::vector<Label>& sure, const LossSpec& spec) {
  std::vector<float> logits(truth.size() * 2, -40);
  for (std::size_t i = 0; i < truth.size(); ++i) logits[2 * i + sure[i]] = 40;
  Batch batch;
  batch.samples = 1;
  batch.labels = truth;
  batch.kind = TargetKind::kPoints;
  std::vector<double> scratch;
  return chosen_loss(kernels(), logits, batch, 2, 1, spec, scratch).mean;
}

}  // namespace

TEST_CASE("event U-Net: 0.1 million parameters, and a class for each step") {
  const auto model = unet_of(unet_file());
  CHECK(model->layout()->size() > 80'000);
  CHECK(model->layout()->size() < 130'000);
  CHECK(model->outputs_per_sample() == kUnetSteps);
  const auto scores = unet_outputs(*model, initial_unet(*model), noisy_windows(2, 1));
  CHECK(scores.size() == 2 * kUnetSteps * kUnetClasses);
  CHECK(std::ranges::all_of(scores, [](float score) { return std::isfinite(score); }));
}

TEST_CASE("event U-Net: invariant 9, with open gates it is the U-Net without them") {
  const auto gated = unet_of(unet_file());
  std::string text = unet_file();
  for (const char* level : {"1", "2", "3"}) {
    const std::string k = level;
    text = with_replaced(text, "from = \\[\"kept" + k + "\", \"up" + k + "\"\\]",
                         "from = [\"down" + k + "\", \"up" + k + "\"]");
    text = with_replaced(text,
                         "\n[^\n]*name = \"skip" + k + "\"[^\n]*\n[^\n]*name = \"deep" + k +
                             "\"[^\n]*\n[^\n]*\n[^\n]*name = \"gate" + k + "\"[^\n]*\n[^\n]*name = \"kept" +
                             k + "\"[^\n]*",
                         "");
  }
  const auto plain = unet_of(text);
  std::vector<float> open = initial_unet(*gated);
  std::vector<float> parameters;
  for (const TensorInfo& tensor : gated->layout()->tensors()) {
    const std::string name = tensor.name.substr(0, tensor.name.find('.'));
    const bool score = tensor.shape.front() == 1;
    const auto values = std::span(open).subspan(tensor.offset, tensor.size);
    // The layer before a sigmoid.
    if (score) std::ranges::fill(values, tensor.name.ends_with("bias") ? 40.0F : 0.0F);
    if (score || name.starts_with("skip") || name.starts_with("deep")) continue;
    parameters.insert(parameters.end(), values.begin(), values.end());
  }
  REQUIRE(parameters.size() == plain->layout()->size());
  const Dataset data = noisy_windows(2, 4);
  CHECK(unet_outputs(*gated, open, data) == unet_outputs(*plain, parameters, data));
  CHECK(unet_outputs(*gated, initial_unet(*gated), data) != unet_outputs(*plain, parameters, data));
}

TEST_CASE("event U-Net: invariant 9, without norms a shift by 8 steps shifts the inner output") {
  constexpr std::size_t kLong = 512, kShift = 8, kBorder = 176;
  std::string text = with_replaced(unet_file(), "\\{kind = \"group_norm\", groups = 8, activation = \"relu\"",
                                   "{kind = \"relu\"");
  text = with_replaced(text, "256", "512");
  const auto model = unet_of(text, kLong);
  const Dataset data = noisy_windows(1, 5, kLong);
  Dataset shifted = noisy_windows(1, 5, kLong);
  for (std::size_t i = kLong * 2; i-- > kShift * 2;)
    shifted.floats.data()[i] = data.floats.data()[i - kShift * 2];
  const auto parameters = initial_unet(*model);
  const auto before = unet_outputs(*model, parameters, data);
  const auto after = unet_outputs(*model, parameters, shifted);
  double most = 0;
  for (std::size_t i = kBorder * kUnetClasses; i < (kLong - kBorder) * kUnetClasses; ++i)
    most = std::max(most, std::abs(static_cast<double>(after[i + kShift * kUnetClasses] - before[i])));
  CHECK(most < 1e-6);
  // A shift by another number of steps does not.
  double other = 0;
  for (std::size_t i = kBorder * kUnetClasses; i < (kLong - kBorder) * kUnetClasses; ++i)
    other = std::max(other, std::abs(static_cast<double>(after[i + 4 * kUnetClasses] - before[i])));
  CHECK(other > 1e-4);
}

TEST_CASE("event U-Net: invariant 10, the Dice loss of a right prediction is 0, of its complement 1") {
  std::vector<Label> truth(100, 0);
  std::fill(truth.begin() + 30, truth.begin() + 60, Label{1});
  std::vector<Label> complement;
  for (const Label label : truth) complement.push_back(static_cast<Label>(1 - label));
  const auto dice = [&](const std::vector<Label>& sure) {
    return sure_loss(truth, sure, {.kind = LossKind::kDice, .dice_weight = 1}) -
           sure_loss(truth, sure, {.kind = LossKind::kDice, .dice_weight = 0});
  };
  CHECK(std::abs(dice(truth)) < 1e-5);
  CHECK(static_cast<double>(dice(complement)) == doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE("event U-Net: invariant 11, identical clients with one full batch make the centralised step") {
  std::string text =
      with_replaced(unet_file(), "\\{kind = \"adamw\", learning_rate = 0.001\\}", "{learning_rate = 0.1}");
  text = with_replaced(text, "local_epochs = 5", "local_epochs = 1");
  const TaskSpec spec = unet_task(text);
  const auto model = unet_of(text);
  const Dataset one = noisy_windows(6, 7);
  Dataset all = noisy_windows(12, 7);
  for (std::size_t i = 0; i < one.floats.size(); ++i)
    all.floats.data()[i] = all.floats.data()[i + one.floats.size()] = one.floats.data()[i];
  for (std::size_t i = 0; i < one.targets.points.size(); ++i)
    all.targets.points[i] = all.targets.points[i + one.targets.points.size()] = one.targets.points[i];
  const auto step = [&](const Dataset& data, std::uint64_t seed) {
    std::vector<float> parameters = initial_unet(*model);
    std::vector<std::uint32_t> samples(data.size());
    std::iota(samples.begin(), samples.end(), 0U);
    Trainer trainer(*model, spec.training);
    const TrainingResult result = trainer.train(parameters, data, samples, Rng(seed));
    CHECK(result.steps == 1);
    return parameters;
  };
  const auto central = step(all, 1);
  const auto first = step(one, 2), second = step(one, 3);
  double most = 0, moved = 0;
  const auto begin = initial_unet(*model);
  for (std::size_t i = 0; i < central.size(); ++i) {
    const double mean = (static_cast<double>(first[i]) + static_cast<double>(second[i])) / 2;
    most = std::max(most, std::abs(mean - static_cast<double>(central[i])));
    moved = std::max(moved, std::abs(static_cast<double>(central[i] - begin[i])));
  }
  CHECK(moved > 1e-3);
  CHECK(most < 1e-5 * (1 + moved));
}

}  // namespace fedge::learn
