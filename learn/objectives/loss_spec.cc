#include "learn/objectives/loss_spec.h"

#include <string>

#include "learn/data/data_section.h"
#include "learn/model.h"
#include "learn/models/kinds.h"

namespace fedge::learn {
namespace {

const std::vector<std::string> kLossNames = {"usual", "huber", "dice"};

}  // namespace

const char* name_of(LossKind kind) { return kLossNames.at(static_cast<std::size_t>(kind)).c_str(); }

LossSpec read_loss(config::Reader& section) {
  LossSpec spec;
  spec.kind = static_cast<LossKind>(section.choice(
      "kind", kLossNames, 0,
      "Loss that local training minimises. Evaluations do not depend on it.\nusual: cross-entropy of "
      "classes, "
      "points and tokens, binary cross-entropy of labels, squared error of values.\nhuber: values; large "
      "errors count linearly.\ndice: points; cross-entropy and the Dice loss of each class."));
  require_kind(section, "delta", spec.kind == LossKind::kHuber, "has no effect without kind = \"huber\"");
  require_kind(section, "dice_weight", spec.kind == LossKind::kDice, "has no effect without kind = \"dice\"");
  spec.delta = static_cast<float>(section.number(
      "delta", 1.0, {1e-6, 1e6}, "huber: error of a normalised value up to which it counts squared."));
  spec.dice_weight =
      static_cast<float>(section.number("dice_weight", 1.0, {0.0, 1e6}, "dice: factor of the Dice loss."));
  for (const double weight : section.numbers(
           "class_weights", std::vector<double>{}, {1e-6, 1e6},
           "Weight of the samples or points of each class, or of each label that is set. The mean "
           "over a batch of classes or points is divided by the sum of its weights. Empty: all 1."))
    spec.weights.push_back(static_cast<float>(weight));
  return spec;
}

Result<void> check_loss(const LossSpec& spec, const Model& model) {
  if (spec.usual()) return {};
  const ModelKind* kind = find_model_kind(model.spec().kind);
  if (kind != nullptr && kind->own)
    return invalid("training.loss: the model " + model.spec().kind +
                   " has its own loss; remove the section training.loss");
  if (model.input().tokens)
    return invalid(
        "training.loss: the tokens of a text have the usual loss without weights; remove the section");
  const TargetShape target = model.target();
  const auto only = [&](const char* task) {
    return invalid(std::string("training.loss.kind: ") + name_of(spec.kind) + " is for data.task = \"" +
                   task + "\", but the run's is \"" + target.task() + "\"");
  };
  if (spec.kind == LossKind::kHuber && target.kind != TargetKind::kValues) return only("regression");
  if (spec.kind == LossKind::kDice && target.kind != TargetKind::kPoints) return only("segmentation");
  if (spec.weights.empty()) return {};
  if (target.kind == TargetKind::kValues)
    return invalid("training.loss.class_weights: values have no classes; remove the key");
  if (spec.weights.size() == target.outputs) return {};
  return invalid("training.loss.class_weights: lists " + std::to_string(spec.weights.size()) +
                 " weights, but the data has " + std::to_string(target.outputs) + " classes or labels");
}

}  // namespace fedge::learn
