// LossSpec: which loss local training minimises (section [training.loss]).
#pragma once

#include <vector>

#include "core/config/reader.h"
#include "core/result.h"

namespace fedge::learn {

class Model;

// LossKind is what a step minimises for the predictions of a batch. Evaluations do not depend on it.
//   usual   classes, points and tokens: softmax cross-entropy; labels: binary cross-entropy of the logistic
//           function of each score; values: the squared error
//   huber   values: e^2 / 2 for errors e up to delta, delta * (|e| - delta / 2) beyond (Huber 1964)
//   dice    points: cross-entropy + dice_weight * D. D is the mean over samples and classes of
//           1 - (2 A + s) / (P + Y + s), where over the points of the sample A is the sum of the class's
//           probabilities at points of the class, P of its probabilities, Y the number of points of the
//           class, and s = 1e-5 (Milletari et al., "V-Net", 2016, without the squares; Isensee et al.,
//           "nnU-Net", Nature Methods 2021, for the sum with cross-entropy)
enum class LossKind { kUsual, kHuber, kDice };

struct LossSpec {
  LossKind kind = LossKind::kUsual;
  float delta = 1.0F;        // huber
  float dice_weight = 1.0F;  // dice
  // One for each class: the mean over samples or points is weighted by their class's weight, also in the
  // cross-entropy of dice. One for each label: it multiplies the loss of a label that is set. Empty: 1.
  std::vector<float> weights;

  bool usual() const { return kind == LossKind::kUsual && weights.empty(); }
};

const char* name_of(LossKind kind);
LossSpec read_loss(config::Reader& section);
// kInvalid, naming the key, if the model's predictions cannot have this loss.
Result<void> check_loss(const LossSpec& spec, const Model& model);

}  // namespace fedge::learn
