// A custom kind of model: a class's score is minus the squared distance of the input to its prototype.
//   prototypes-sim run examples/custom_model/run.toml
#include <algorithm>

#include "apps/sim_program.h"
#include "learn/models/kinds.h"
#include "learn/models/loss.h"

using namespace fedge;
using namespace fedge::learn;

class Prototypes final : public Model {
 public:
  Prototypes(std::size_t inputs, std::size_t classes, float scale) : scale_(scale) {
    layout_ = std::make_shared<ParameterLayout>(ParameterLayout().add("prototype", {classes, inputs}));
    input_size_ = inputs, classes_ = classes;
  }
  void initialise(std::span<float> model, const Rng&) const override { std::ranges::fill(model, 0.0F); }
  std::unique_ptr<Workspace> make_workspace(std::size_t) const override {
    return std::make_unique<Workspace>();
  }
  void forward(std::span<const float> model, const Batch& batch, std::span<float> scores,
               Workspace&) const override {
    std::ranges::fill(scores, 0.0F);
    for (std::size_t i = 0; i < scores.size() * input_size_; ++i)
      scores[i / input_size_] -= scale_ * difference(model, batch, i) * difference(model, batch, i);
  }
  BatchLoss loss_and_gradient(std::span<const float> model, const Batch& batch, std::span<float> gradient,
                              Workspace& workspace) const override {
    std::vector<float> scores(batch.samples * classes_);
    forward(model, batch, scores, workspace);
    // Replaces the scores by the derivatives of the loss with respect to them.
    const BatchLoss loss = sample_loss(kernels(), scores, batch, classes_, 1.0F);
    std::ranges::fill(gradient, 0.0F);
    for (std::size_t i = 0; i < scores.size() * input_size_; ++i)
      gradient[i % gradient.size()] += 2 * scale_ * scores[i / input_size_] * difference(model, batch, i);
    return loss;
  }

 private:
  // Returns difference i of those between each sample and each prototype.
  float difference(std::span<const float> model, const Batch& batch, std::size_t i) const {
    return batch.inputs[i / model.size() * input_size_ + i % input_size_] - model[i % model.size()];
  }
  float scale_;
};

int main(int argc, char** argv) {
  register_model({.name = "prototypes",
                  .paper = "an example",
                  .summary = "the class whose prototype is nearest",
                  .read = [](config::Reader& section, ModelSpec&) -> ModelFactory {
                    const auto scale = static_cast<float>(
                        section.number("scale", 0.01, {1e-6, 1e3}, "Factor of a distance."));
                    return [scale](const ModelContext& context) -> std::unique_ptr<Model> {
                      return std::make_unique<Prototypes>(context.input.size(), context.outputs, scale);
                    };
                  }});
  return apps::sim_main(argc, argv);
}
