// The losses of models, with their gradients: softmax cross-entropy for classes and tokens, binary
// cross-entropy for several labels, and the squared error for values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "learn/kernels/kernels.h"
#include "learn/model.h"
#include "learn/objectives/loss_spec.h"

namespace fedge::learn {

// Turns logits (rows x classes) in place into scale * d(mean loss)/d(logits) and returns the loss. Each label
// must be below `classes`. A sample has this number of consecutive rows, its points.
BatchLoss cross_entropy(const Kernels& kernels, std::span<float> logits, std::span<const Label> labels,
                        std::size_t classes, float scale, std::size_t points = 1);

// The loss of a batch that is no text, by its kind. `logits` are samples x (outputs for a class, all labels
// or all values; points x outputs for a class of each point), in place as above. The mean is over the
// samples, and in each over its points, labels or values. Labels: binary cross-entropy of the logistic
// function of each logit. Values: the squared difference from each logit.
BatchLoss sample_loss(const Kernels& kernels, std::span<float> logits, const Batch& batch,
                      std::size_t outputs, float scale);

// The loss that a run chooses, of a batch that is no text. With the usual loss, the bits of sample_loss().
// `spec` passed check_loss(). `scratch` grows to twice the outputs.
BatchLoss chosen_loss(const Kernels& kernels, std::span<float> logits, const Batch& batch,
                      std::size_t outputs, float scale, const LossSpec& spec, std::vector<double>& scratch);

// The loss of a batch of sequences whose logits arrive in pieces. The mean is over the targets of the whole
// batch; without targets, loss and gradient are 0.
class TokenLoss {
 public:
  // `targets` are whole sequences of `length` tokens; they must outlive the object.
  TokenLoss(std::span<const Token> targets, std::size_t length);
  // The same for a part of a batch with `total` targets in all; result() is then of no use.
  TokenLoss(std::span<const Token> targets, std::size_t length, std::size_t total);
  // Turns the logits (tokens x vocabulary) of tokens first, first + 1, ... in place into d(mean
  // loss)/d(logits). Each target must be below the vocabulary's size, or kNoToken.
  void add(const Kernels& kernels, std::span<float> logits, std::size_t first, std::size_t vocabulary);
  BatchLoss result() const;
  // The sum of losses of each sequence.
  std::span<double> losses() { return losses_; }
  // Number of targets of the batch.
  std::size_t total() const { return total_; }

 private:
  std::span<const Token> targets_;
  std::size_t length_;
  std::vector<std::uint32_t> counts_;  // number of targets, by sequence
  std::vector<double> losses_;         // sum of losses, by sequence
  std::size_t total_ = 0;
};

}  // namespace fedge::learn
