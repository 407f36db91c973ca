#include "learn/trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <stop_token>
#include <vector>

#include "tests/unit/learn/reference_network.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

// Samples 0, 1, 2, ... with one pixel that holds the sample's number; labels i % 3.
Dataset numbered(std::size_t samples) {
  Dataset data{{1, 1, 1}, 3, AlignedBuffer<float>(samples), {}};
  for (std::size_t i = 0; i < samples; ++i) {
    data.floats.data()[i] = static_cast<float>(i);
    data.labels.push_back(static_cast<Label>(i % 3));
  }
  return data;
}

std::vector<std::uint32_t> first_samples(std::size_t count) {
  std::vector<std::uint32_t> samples(count);
  std::iota(samples.begin(), samples.end(), 0U);
  return samples;
}

// Records every batch. Two parameters: the gradient of w[i] is (i + 1) * w[i] + the batch's mean input; the
// loss is the number of the step.
class RecordingModel final : public Model {
 public:
  RecordingModel() {
    auto layout = std::make_shared<ParameterLayout>();
    layout->add("w", {2});
    layout_ = std::move(layout);
    input_size_ = 1;
    classes_ = 3;
  }

  void initialise(std::span<float>, const Rng&) const override {}
  std::unique_ptr<Workspace> make_workspace(std::size_t max_batch) const override {
    workspace_batch = max_batch;
    return std::make_unique<Workspace>();
  }
  BatchLoss loss_and_gradient(std::span<const float> parameters, const Batch& batch,
                              std::span<float> gradient, Workspace&) const override {
    record(batch);
    const float mean = std::accumulate(batch.inputs.begin(), batch.inputs.end(), 0.0F) /
                       static_cast<float>(batch.inputs.size());
    for (std::size_t i = 0; i < 2; ++i) gradient[i] = static_cast<float>(i + 1) * parameters[i] + mean;
    return {.mean = static_cast<float>(batches.size())};
  }
  BatchLoss sgd_step(std::span<float> parameters, const Batch& batch, float learning_rate, float weight_decay,
                     Workspace& workspace) const override {
    float gradient[2];
    const BatchLoss loss = loss_and_gradient(parameters, batch, gradient, workspace);
    for (std::size_t i = 0; i < 2; ++i)
      parameters[i] -= learning_rate * (gradient[i] + weight_decay * parameters[i]);
    return loss;
  }
  void forward(std::span<const float>, const Batch&, std::span<float>, Workspace&) const override {}

  // Returns all samples in the order of training.
  std::vector<std::uint32_t> order() const {
    std::vector<std::uint32_t> all;
    for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
    return all;
  }

  std::function<void()> on_batch;
  mutable std::vector<std::vector<std::uint32_t>> batches;
  mutable bool labels_match = true;
  mutable std::size_t workspace_batch = 0;

 private:
  void record(const Batch& batch) const {
    REQUIRE(batch.inputs.size() == batch.labels.size());
    batches.emplace_back();
    for (std::size_t i = 0; i < batch.labels.size(); ++i) {
      batches.back().push_back(static_cast<std::uint32_t>(batch.inputs[i]));
      labels_match = labels_match && batch.labels[i] == batches.back().back() % 3;
    }
    if (on_batch) on_batch();
  }
};

TrainingSpec training_of(std::size_t batch, std::size_t epochs) {
  TrainingSpec spec;
  spec.batch_size = batch;
  spec.local_epochs = epochs;
  return spec;
}

// Returns the order in which samples 0..count-1 are trained.
std::vector<std::uint32_t> order_of(std::size_t count, std::size_t epochs, const Rng& rng) {
  const RecordingModel model;
  float parameters[2] = {};
  Trainer(model, training_of(4, epochs)).train(parameters, numbered(count), first_samples(count), rng);
  return model.order();
}

}  // namespace

TEST_CASE("trainer: a request to stop ends training after the step in hand") {
  RecordingModel model;
  std::stop_source stop;
  model.on_batch = [&] {
    if (model.batches.size() == 5) stop.request_stop();
  };
  float parameters[2] = {};
  Trainer trainer(model, training_of(4, 100));
  const TrainingResult result =
      trainer.train(parameters, numbered(10), first_samples(10), Rng(1), {.stop = stop.get_token()});
  CHECK(model.batches.size() == 5);
  CHECK(result.steps == 5);
  CHECK(result.mean_loss == 3.0);  // the mean of 1 to 5
  CHECK(
      trainer.train(parameters, numbered(10), first_samples(10), Rng(1), {.stop = stop.get_token()}).steps ==
      0);
}

TEST_CASE("trainer: a request to finish ends training after the step in hand, with what was learned so far") {
  RecordingModel model;
  std::stop_source finish;
  model.on_batch = [&] {
    if (model.batches.size() == 4) finish.request_stop();
  };
  float parameters[2] = {};
  const TrainingResult result =
      Trainer(model, training_of(4, 100))
          .train(parameters, numbered(10), first_samples(10), Rng(1), {.finish = finish.get_token()});
  CHECK(model.batches.size() == 4);
  CHECK(result.steps == 4);
  CHECK(result.mean_loss == 2.5);  // the mean of 1 to 4
  float same[2] = {};
  const RecordingModel again;
  Trainer(again, training_of(4, 100)).train(same, numbered(10), first_samples(10), Rng(1), {.max_steps = 4});
  CHECK(same[0] == parameters[0]);
  CHECK(same[1] == parameters[1]);
  CHECK(parameters[0] != 0.0F);
}

TEST_CASE("trainer: every epoch sees every sample once with its label, the last batch being smaller") {
  const RecordingModel model;
  float parameters[2] = {};
  const TrainingResult result =
      Trainer(model, training_of(4, 3)).train(parameters, numbered(10), first_samples(10), Rng(1));
  CHECK(model.workspace_batch == 4);
  REQUIRE(model.batches.size() == 9);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    std::set<std::uint32_t> seen;
    for (std::size_t batch = 0; batch < 3; ++batch) {
      const auto& samples = model.batches[epoch * 3 + batch];
      CHECK(samples.size() == (batch < 2 ? 4 : 2));
      seen.insert(samples.begin(), samples.end());
    }
    CHECK(seen.size() == 10);
  }
  CHECK(model.labels_match);
  CHECK(result.samples == SampleCount(10));
  CHECK(result.steps == 9);
  // The losses are 1, 2, ..., 9.
  CHECK(result.mean_loss == 5.0);
}

TEST_CASE("trainer: only the samples given are trained on, by their numbers in the data set") {
  const RecordingModel model;
  float parameters[2] = {};
  const std::vector<std::uint32_t> mine = {3, 17, 4, 99};
  const TrainingResult result =
      Trainer(model, training_of(10, 1)).train(parameters, numbered(100), mine, Rng(1));
  REQUIRE(model.batches.size() == 1);
  CHECK(std::is_permutation(mine.begin(), mine.end(), model.batches[0].begin(), model.batches[0].end()));
  CHECK(model.labels_match);
  CHECK(result.samples == SampleCount(4));
  CHECK(result.steps == 1);
}

TEST_CASE("trainer: shuffles differ by epoch and by stream, and are the same for the same stream") {
  const auto order = order_of(50, 2, Rng(1));
  const auto middle = order.begin() + 50;
  CHECK_FALSE(std::equal(order.begin(), middle, middle));
  CHECK_FALSE(std::is_sorted(order.begin(), middle));
  CHECK(order == order_of(50, 2, Rng(1)));
  CHECK(order != order_of(50, 2, Rng(2)));
  CHECK(order != order_of(50, 2, Rng(1).fork("other")));
  // An epoch forks its own stream: earlier draws do not matter.
  Rng used(1);
  used.next_u64();
  CHECK(order == order_of(50, 2, used));
}

TEST_CASE("trainer: epoch e shuffles what the epoch before left with rng.fork(\"epoch\", e)") {
  const Rng rng(9);
  auto samples = first_samples(23);
  std::vector<std::uint32_t> expected;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    Rng stream = rng.fork("epoch", epoch);
    stream.shuffle(std::span(samples));
    expected.insert(expected.end(), samples.begin(), samples.end());
  }
  CHECK(order_of(23, 3, rng) == expected);
}

TEST_CASE("trainer: without samples nothing happens") {
  const RecordingModel model;
  TrainingSpec spec = training_of(4, 5);
  for (const float momentum : {0.0F, 0.9F}) {
    spec.momentum = momentum;
    float parameters[2] = {1.5F, -2.0F};
    const TrainingResult result = Trainer(model, spec).train(parameters, numbered(3), {}, Rng(1));
    CHECK(result.samples == SampleCount(0));
    CHECK(result.steps == 0);
    CHECK(result.mean_loss == 0.0);
    CHECK(parameters[0] == 1.5F);
    CHECK(parameters[1] == -2.0F);
    CHECK(model.batches.empty());
  }
}

TEST_CASE("trainer: momentum and weight decay follow PyTorch's definition of SGD") {
  TrainingSpec spec = training_of(6, 4);  // one batch an epoch, mean input 2.5
  spec.learning_rate = 0.1F;
  for (const float momentum : {0.0F, 0.9F})
    for (const float decay : {0.0F, 0.25F}) {
      CAPTURE(momentum);
      CAPTURE(decay);
      spec.momentum = momentum;
      spec.weight_decay = decay;
      const RecordingModel model;
      float parameters[2] = {1.0F, -3.0F};
      Trainer(model, spec).train(parameters, numbered(6), first_samples(6), Rng(1));
      // torch.optim.SGD: g = gradient + weight_decay w; v = g at first, then momentum v + g; w -= lr v
      double expected[2] = {1.0, -3.0};
      for (std::size_t i = 0; i < 2; ++i) {
        double velocity = 0;
        for (int step = 0; step < 4; ++step) {
          const double gradient =
              static_cast<double>(i + 1) * expected[i] + 2.5 + static_cast<double>(decay) * expected[i];
          velocity = step == 0 ? gradient : static_cast<double>(momentum) * velocity + gradient;
          expected[i] -= static_cast<double>(0.1F) * velocity;
        }
        CHECK(static_cast<double>(parameters[i]) == doctest::Approx(expected[i]).epsilon(2e-6));
      }
    }
}

namespace {

struct RealTraining {
  RealTraining() : data{{4, 4, 1}, 3, AlignedBuffer<float>(40 * 16), {}} {
    Rng rng(21);
    for (float& pixel : data.floats.span()) pixel = static_cast<float>(rng.normal());
    for (std::size_t i = 0; i < 40; ++i) data.labels.push_back(static_cast<Label>(i % 3));
    ModelSpec spec;
    spec.hidden = {9, 5};
    auto made = make_model(spec, data.shape, 3);
    REQUIRE(made.has_value());
    model = std::move(made).value();
    initial.resize(model->layout()->size());
    model->initialise(initial, Rng(22));
  }
  std::vector<float> train(Trainer& trainer, std::span<const std::uint32_t> samples,
                           std::uint64_t seed) const {
    std::vector<float> parameters = initial;
    trainer.train(parameters, data, samples, Rng(seed));
    return parameters;
  }
  Dataset data;
  std::unique_ptr<Model> model;
  std::vector<float> initial;
};

}  // namespace

TEST_CASE("trainer: a used trainer gives the same bits as a new one, with and without momentum") {
  const RealTraining real;
  TrainingSpec spec = training_of(4, 2);
  for (const float momentum : {0.0F, 0.9F}) {
    CAPTURE(momentum);
    spec.momentum = momentum;
    Trainer fresh(*real.model, spec);
    Trainer used(*real.model, spec);
    real.train(used, first_samples(40), 1);
    real.train(used, first_samples(3), 2);
    const auto expected = real.train(fresh, first_samples(10), 3);
    CHECK(real.train(used, first_samples(10), 3) == expected);
    CHECK(expected != real.initial);
  }
}

TEST_CASE("trainer: momentum 0 is the limit of small momentum") {
  // They use different implementations: a step in place, and a stored gradient with velocity.
  const RealTraining real;
  TrainingSpec spec = training_of(4, 3);
  spec.weight_decay = 0.01F;
  Trainer plain(*real.model, spec);
  spec.momentum = 1e-9F;
  Trainer tiny(*real.model, spec);
  const auto a = real.train(plain, first_samples(40), 1);
  const auto b = real.train(tiny, first_samples(40), 1);
  float worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  CHECK(worst < 2e-6F);
}

TEST_CASE("trainer: the root mean square is of the samples' own losses, not of the batches' means") {
  const RealTraining real;
  // With a learning rate of 0, every step sees the same model: its class scores give the losses.
  const auto workspace = real.model->make_workspace(40);
  std::vector<float> logits(40 * 3);
  std::vector<float> inputs(40 * 16);
  for (std::uint32_t i = 0; i < 40; ++i) real.data.read_inputs(i, std::span(inputs).subspan(i * 16, 16));
  real.model->forward(real.initial, {.inputs = inputs}, logits, *workspace);
  double squares = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    const learn::test::Values row(logits.begin() + static_cast<std::ptrdiff_t>(3 * i),
                                  logits.begin() + static_cast<std::ptrdiff_t>(3 * i + 3));
    squares += std::pow(learn::test::cross_entropy(row, real.data.labels[i]), 2);
  }
  for (const float momentum : {0.0F, 0.9F}) {
    TrainingSpec spec = training_of(7, 2);  // the last batch of an epoch has 5 samples
    spec.learning_rate = 0;
    spec.momentum = momentum;
    std::vector<float> parameters = real.initial;
    const TrainingResult result =
        Trainer(*real.model, spec).train(parameters, real.data, first_samples(40), Rng(1));
    CHECK(result.rms_loss == doctest::Approx(std::sqrt(squares / 40)).epsilon(1e-6));
    CHECK(result.rms_loss > result.mean_loss);
  }
}

TEST_CASE("trainer: training lowers the loss on what was trained on") {
  const RealTraining real;
  TrainingSpec spec = training_of(5, 1);
  spec.learning_rate = 0.1F;
  Trainer trainer(*real.model, spec);
  std::vector<float> parameters = real.initial;
  const double first = trainer.train(parameters, real.data, first_samples(40), Rng(1)).mean_loss;
  double last = first;
  for (std::uint64_t i = 2; i < 100; ++i)
    last = trainer.train(parameters, real.data, first_samples(40), Rng(i)).mean_loss;
  CHECK(last < 0.2 * first);
}
