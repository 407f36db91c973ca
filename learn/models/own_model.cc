#include "learn/models/own_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/config/own_part.h"

namespace fedge::learn {
namespace {

using config::guarded;
using config::PartFailure;

class OwnModel final : public Model {
 public:
  OwnModel(std::string part, std::unique_ptr<Model> model)
      : part_(std::move(part)),
        model_(std::move(model)),
        outputs_(guarded(part_, [&] { return model_->outputs_per_sample(); })),
        activations_(guarded(part_, [&] { return model_->activations_per_sample(); })),
        adapters_(guarded(part_, [&] { return model_->adapters(); })),
        in_place_(guarded(part_, [&] { return model_->steps_in_place(); })) {
    layout_ = model_->layout();
    input_size_ = model_->input_size();
    classes_ = model_->classes();
  }

  std::size_t outputs_per_sample() const override { return outputs_; }
  std::size_t activations_per_sample() const override { return activations_; }
  const Adapters* adapters() const override { return adapters_; }
  bool steps_in_place() const override { return in_place_; }

  void initialise(std::span<float> parameters, const Rng& rng) const override {
    guarded(part_, [&] { model_->initialise(parameters, rng); });
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (!std::isfinite(parameters[i]))
        throw PartFailure(part_ + ": initialise() set parameter " + layout_->describe(i) +
                          " to a value that is not finite");
  }
  std::unique_ptr<Workspace> make_workspace(std::size_t max_batch) const override {
    auto workspace = guarded(part_, [&] { return model_->make_workspace(max_batch); });
    if (!workspace) throw PartFailure(part_ + ": make_workspace() returned no object");
    return workspace;
  }
  BatchLoss loss_and_gradient(std::span<const float> parameters, const Batch& batch,
                              std::span<float> gradient, Workspace& workspace) const override {
    return guarded(part_, [&] { return model_->loss_and_gradient(parameters, batch, gradient, workspace); });
  }
  BatchLoss sgd_step(std::span<float> parameters, const Batch& batch, float learning_rate, float weight_decay,
                     Workspace& workspace) const override {
    return guarded(
        part_, [&] { return model_->sgd_step(parameters, batch, learning_rate, weight_decay, workspace); });
  }
  void forward(std::span<const float> parameters, const Batch& batch, std::span<float> logits,
               Workspace& workspace) const override {
    guarded(part_, [&] { model_->forward(parameters, batch, logits, workspace); });
  }

 private:
  std::string part_;
  std::unique_ptr<Model> model_;
  std::size_t outputs_;
  std::size_t activations_;
  const Adapters* adapters_;
  bool in_place_;
};

// Checks what its callers rely on.
Result<void> check_made(const std::string& part, const Model& model, const ModelContext& context) {
  const auto wrong = [&](const std::string& what) { return invalid(part + " " + what); };
  if (!model.layout() || model.layout()->size() == 0)
    return wrong("has no parameters; set layout_ in its constructor");
  const bool text = context.input.tokens;
  const std::size_t input = text ? context.input.width : context.input.size();
  if (model.input_size() != input || model.classes() != context.outputs)
    return wrong("has " + std::to_string(model.input_size()) + " inputs and " +
                 std::to_string(model.classes()) + " classes, but the data has " + std::to_string(input) +
                 " and " + std::to_string(context.outputs) +
                 "; set input_size_ and classes_ in its constructor");
  const std::size_t predictions = text ? input : context.target.points;
  if (model.outputs_per_sample() != predictions)
    return wrong("has " + std::to_string(model.outputs_per_sample()) +
                 " outputs per sample, but the data needs " + std::to_string(predictions) +
                 (text              ? "; outputs_per_sample() of a model of texts must return input_size_"
                  : predictions > 1 ? "; outputs_per_sample() must return context.target.points"
                                    : "; do not override outputs_per_sample()"));
  if ((model.adapters() != nullptr) != (context.spec.adapter.rank > 0))
    return wrong(model.adapters() != nullptr ? "has adapters although model.adapter.rank is 0"
                                             : "declares the trait `adapters`, but adapters() returns null");
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> wrap_own_model(const std::string& part, std::unique_ptr<Model> model,
                                              const ModelContext& context) {
  if (!model) return invalid(part + " is null: its factory returned no object");
  auto own = std::make_unique<OwnModel>(part, std::move(model));
  FEDGE_TRY_VOID(check_made(part, *own, context));
  return std::unique_ptr<Model>(std::move(own));
}

}  // namespace fedge::learn
