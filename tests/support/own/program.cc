// A program like a user's, with a data set, a model, a planner, an objective, an aggregator and a server
// optimizer of its own. Tests start it as simulator, coordinator and client.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/aggregators/registry.h"
#include "aggregation/planners/planner.h"
#include "aggregation/server_optimizers/server_optimizer.h"
#include "apps/sim_program.h"
#include "learn/data/kinds.h"
#include "learn/models/kinds.h"
#include "learn/models/loss.h"
#include "learn/objectives/kinds.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

// Points in a square; the label is 1 in the upper half.
class Square final : public DataSource {
 public:
  Result<DatasetInfo> describe(const DataSpec&) const override { return DatasetInfo{kShape, 2, 2, {}}; }
  Result<Dataset> load(const DataSpec&, Split split) const override {
    const std::size_t count = split == Split::kTrain ? 80 : 40;
    Dataset data{.shape = kShape, .classes = 2, .floats = AlignedBuffer<float>(2 * count), .labels = {}};
    Rng rng = Rng(0).fork(split == Split::kTrain ? "train" : "test");
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < 2; ++j)
        data.floats.data()[2 * i + j] = static_cast<float>(2 * rng.uniform() - 1);
      data.labels.push_back(data.floats.data()[2 * i + 1] > 0 ? 1 : 0);
    }
    return data;
  }

 private:
  static constexpr InputShape kShape{1, 2, 1};
};

// A weight of each input for each class.
class Weights final : public Model {
 public:
  explicit Weights(const ModelContext& context) {
    input_size_ = context.input.size();
    classes_ = context.outputs;
    layout_ = std::make_shared<ParameterLayout>(ParameterLayout().add("weight", {classes_, input_size_}));
  }
  void initialise(std::span<float> model, const Rng& rng) const override {
    Rng draws = rng.fork("init");
    for (float& value : model) value = static_cast<float>(0.1 * draws.normal());
  }
  std::unique_ptr<Workspace> make_workspace(std::size_t) const override {
    return std::make_unique<Workspace>();
  }
  void forward(std::span<const float> model, const Batch& batch, std::span<float> scores,
               Workspace&) const override {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const std::size_t sample = i / classes_ * input_size_;
      const std::size_t row = i % classes_ * input_size_;
      scores[i] = 0;
      for (std::size_t j = 0; j < input_size_; ++j) scores[i] += model[row + j] * batch.inputs[sample + j];
    }
  }
  BatchLoss loss_and_gradient(std::span<const float> model, const Batch& batch, std::span<float> gradient,
                              Workspace& workspace) const override {
    std::vector<float> scores(batch.labels.size() * classes_);
    forward(model, batch, scores, workspace);
    const BatchLoss loss = cross_entropy(kernels(), scores, batch.labels, classes_, 1.0F);
    std::ranges::fill(gradient, 0.0F);
    for (std::size_t i = 0; i < scores.size(); ++i)
      for (std::size_t j = 0; j < input_size_; ++j)
        gradient[i % classes_ * input_size_ + j] += scores[i] * batch.inputs[i / classes_ * input_size_ + j];
    return loss;
  }
};

// Clients train the first half of the parameters in odd rounds, and the second half in even rounds.
class Halves final : public aggregation::Planner {
 public:
  explicit Halves(std::size_t size) : size_(size) {}
  Coverage plan(const aggregation::PlanRequest& request) override {
    const std::size_t middle = size_ / 2;
    return Coverage::of({request.round.value() % 2 == 1 ? Range{0, middle} : Range{middle, size_}});
  }
  double share(ClientId) const override { return 0.5; }

 private:
  std::size_t size_;
};

// Pulls all parameters towards 0.
class Shrinkage final : public Objective {
 public:
  void add_gradient(std::span<const float> parameters, std::span<const float>,
                    std::span<float> gradient) const override {
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += 0.01F * parameters[i];
  }
};

// Server momentum, whose velocity lasts from round to round.
class Velocity final : public aggregation::ServerOptimizer {
 public:
  Velocity(std::size_t parameters, double momentum) : velocity_(parameters), momentum_(momentum) {}
  void step(std::size_t first, std::span<float> model, std::span<const double> aggregate) override {
    for (std::size_t i = 0; i < model.size(); ++i) {
      double& velocity = velocity_[first + i];
      velocity = momentum_ * velocity + aggregate[i];
      model[i] = static_cast<float>(static_cast<double>(model[i]) + velocity);
    }
  }
  std::vector<std::span<std::byte>> memory() override {
    return {std::as_writable_bytes(std::span(velocity_))};
  }

 private:
  std::vector<double> velocity_;
  double momentum_;
};

// The mean of the updates, as integers.
class Average final : public aggregation::Aggregator {
 public:
  Average(std::size_t parameters, std::string fault) : sums_(parameters), fault_(std::move(fault)) {}
  Result<void> add(std::span<const aggregation::Update> updates, Parallel&) override {
    std::vector<float> values(sums_.size());
    for (const aggregation::Update& update : updates) {
      FEDGE_TRY_VOID(update.values->read(0, values));
      for (std::size_t i = 0; i < values.size(); ++i)
        sums_[i] += std::llround(static_cast<double>(values[i]) * kUnit);
      ++count_;
    }
    return {};
  }
  Result<void> prepare(Parallel&) override {
    if (fault_ == "throws") throw std::runtime_error("no table");
    if (fault_ == "few") return Error{ErrorCode::kUnavailable, "it needs 100 updates"};
    return {};
  }
  Result<void> read(std::size_t first, std::span<double> out, Parallel&) override {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<double>(sums_[first + i]) / kUnit / static_cast<double>(count_);
    return {};
  }
  Coverage covered() const override { return Coverage::all(sums_.size()); }
  void clear() override { *this = Average(sums_.size(), fault_); }

 private:
  static constexpr double kUnit = 1 << 24;
  std::vector<std::int64_t> sums_;
  std::int64_t count_ = 0;
  std::string fault_;
};

void register_parts() {
  register_dataset({.name = "square",
                    .paper = "",
                    .summary = "points in a square",
                    .traits = {},
                    .read = [](config::Reader&) -> std::shared_ptr<const DataSource> {
                      return std::make_shared<Square>();
                    }});
  register_model({.name = "weights",
                  .paper = "",
                  .summary = "a weight of each input for each class",
                  .traits = {},
                  .read = [](config::Reader&, ModelSpec&) -> ModelFactory {
                    return [](const ModelContext& context) -> std::unique_ptr<Model> {
                      return std::make_unique<Weights>(context);
                    };
                  }});
  aggregation::register_aggregator({.name = "average",
                                    .paper = "",
                                    .summary = "the mean of the updates",
                                    .traits = {.linear = true},
                                    .read = [](config::Reader& section) -> aggregation::AggregatorPart {
                                      const std::string fault = section.text("fault", "", "How it fails.");
                                      return {.make = [fault](const aggregation::AggregatorContext& context)
                                                  -> std::unique_ptr<aggregation::Aggregator> {
                                        return std::make_unique<Average>(context.layout->size(), fault);
                                      }};
                                    }});
  aggregation::register_planner({.name = "halves",
                                 .paper = "",
                                 .summary = "one half of the model in each round",
                                 .traits = {},
                                 .read = [](config::Reader&) -> aggregation::PlannerPart {
                                   return {.make = [](const aggregation::PlannerContext& context)
                                               -> Result<std::unique_ptr<aggregation::Planner>> {
                                     return std::unique_ptr<aggregation::Planner>(
                                         std::make_unique<Halves>(context.layout->size()));
                                   }};
                                 }});
  register_objective({.name = "shrinkage",
                      .paper = "",
                      .summary = "pulls all parameters towards 0",
                      .read = [](config::Reader&, ObjectiveSpec&) -> ObjectiveFactory {
                        return [](const ObjectiveSpec&) -> std::shared_ptr<const Objective> {
                          return std::make_shared<Shrinkage>();
                        };
                      }});
  aggregation::register_server_optimizer(
      {.name = "velocity",
       .paper = "",
       .summary = "server momentum",
       .read = [](config::Reader& section) -> aggregation::ServerOptimizerFactory {
         const double momentum = section.number("momentum", 0.9, {0, 1}, "Factor of the last velocity.");
         return [momentum](std::size_t parameters) -> std::unique_ptr<aggregation::ServerOptimizer> {
           return std::make_unique<Velocity>(parameters, momentum);
         };
       }});
}

}  // namespace

int main(int argc, char** argv) {
  register_parts();
  return apps::sim_main(argc, argv);
}
