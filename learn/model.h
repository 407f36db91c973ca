// Model: a network built from a ModelSpec, with hand-written forward and backward passes over a flat
// parameter vector. Thread-safe: it has no state, and scratch memory is in the caller's Workspace.
// Initialisation is PyTorch's default: weights and biases uniform in +-1/sqrt(fan_in). A transformer has its
// own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/parameters.h"
#include "core/rng.h"
#include "learn/data/batch.h"
#include "learn/data/dataset.h"
#include "learn/objectives/loss_spec.h"
#include "learn/spec.h"
#include "learn/trained_rows.h"

namespace fedge::learn {

class Adapters;
class CompactWeights;
class SplitModel;
class TextDecoder;

// The loss of a batch (learn/models/loss.h).
struct BatchLoss {
  float mean = 0;      // over the samples, or over the targets of a text
  double squares = 0;  // sum of the samples' squared losses; a sequence's loss is its mean
  bool operator==(const BatchLoss&) const = default;
};

// Multiply-adds that backward passes have executed. A convolution skips those for gradients that are zero.
struct Products {
  std::uint64_t weights = 0;  // for gradients of weights
  std::uint64_t inputs = 0;   // for gradients of a layer's inputs
  Products& operator+=(const Products& more) {
    weights += more.weights;
    inputs += more.inputs;
    return *this;
  }
};

// The task that a model is made for.
struct ModelContext {
  const ModelSpec& spec;
  const InputShape& input;
  std::size_t outputs;  // of a prediction: classes, labels, values, or tokens in the vocabulary
  TargetShape target;   // what is predicted
};

// The contrastive term of one step (learn/objectives/contrast.h).
struct ContrastTerm {
  float mu = 0;
  float temperature = 0;
  std::vector<const float*> directions;  // of each sample of the batch, as long as a representation
};

// Scratch of one thread for one model, sized for a maximum batch; a step allocates nothing.
class Workspace {
 public:
  virtual ~Workspace() = default;

  // The rows that a backward pass computes; at first every row of the model. Omitted rows cost nothing: there
  // is no weight gradient, and no input gradient below the lowest layer with a trained row.
  TrainedRows trained;
  // Whether a transformer keeps only the inputs of its blocks for the backward pass, and computes the rest
  // again
  // ("activation checkpointing"; Chen et al. 2016, "sublinear memory cost"). The same result, bit for bit.
  bool recompute = false;
  // Number of ranks of the model's adapters that run and are trained; if it exceeds their rank, all.
  std::size_t ranks = SIZE_MAX;
  // Where the passes of a model that reads_apart() find the parameters that are not trained, as long as the
  // whole model; null: with the others.
  const float* frozen = nullptr;
  // Holds the matrices that are not trained, of a model that reads_apart(). If it is null, they are float32
  // and lie with the others.
  const CompactWeights* base = nullptr;
  Products products;  // sum over all backward passes
  Rng draws{0};       // of the step, for dropout; only forward() has none
  const LossSpec* loss =
      nullptr;  // to minimise; null: the usual one. Models that programs register have theirs
  std::vector<double> loss_sums;  // scratch of chosen_loss()
  // Added to the loss that a step minimises, not to the loss that it returns; null: nothing. Only for models
  // with a representation.
  const ContrastTerm* contrast = nullptr;
};

class Model {
 public:
  virtual ~Model() = default;

  const std::shared_ptr<const ParameterLayout>& layout() const { return layout_; }
  // Size of a sample, in floats or tokens.
  std::size_t input_size() const { return input_size_; }
  // Outputs of a prediction: number of classes, of labels, of values, or of tokens in the vocabulary.
  std::size_t classes() const { return classes_; }
  // Number of predictions for a sample: one, or one for each token or point.
  virtual std::size_t outputs_per_sample() const { return 1; }
  // Numbers that a workspace holds for each sample, about; evaluation takes fewer samples at a time if they
  // are many.
  virtual std::size_t activations_per_sample() const { return 0; }
  // How often a forward pass over one sample uses each weight of a layer (a tensor of two or more
  // dimensions), by TensorInfo::layer. By default once, for models whose layers are not known.
  virtual std::vector<double> weight_uses() const;
  // Null for a model without adapters. With adapters, all other parameters are frozen.
  virtual const Adapters* adapters() const { return nullptr; }
  // Whether training reads the parameters that are not trainable from Workspace::frozen, and only the others
  // from its parameters. So a client needs the frozen ones once in memory.
  virtual bool reads_apart() const { return false; }
  // The same model for training on two machines (learn/split/split_model.h); null if it cannot be cut.
  virtual const SplitModel* split() const { return nullptr; }
  // The arguments of make_model().
  const ModelSpec& spec() const { return spec_; }
  const InputShape& input() const { return input_; }
  TargetShape target() const { return {target_, classes_, input_.tokens ? 1 : outputs_per_sample()}; }

  // Fills all parameters from the streams rng.fork("init", layer).
  virtual void initialise(std::span<float> parameters, const Rng& rng) const = 0;
  virtual std::unique_ptr<Workspace> make_workspace(std::size_t max_batch) const = 0;

  // Returns the batch's loss and overwrites `gradient` (layout().size() floats) with the derivative of its
  // mean. Writes only the rows in workspace.trained; a transformer writes all parameters of each layer with
  // such a row.
  virtual BatchLoss loss_and_gradient(std::span<const float> parameters, const Batch& batch,
                                      std::span<float> gradient, Workspace& workspace) const = 0;
  // Whether sgd_step() may be called.
  virtual bool steps_in_place() const { return false; }
  // Makes one plain SGD step in place, w <- (1 - learning_rate * weight_decay) w - learning_rate * gradient,
  // without storing the gradient. Moves only the trained rows. Returns the loss before the step.
  virtual BatchLoss sgd_step(std::span<float> parameters, const Batch& batch, float learning_rate,
                             float weight_decay, Workspace& workspace) const;
  // Writes the scores before softmax, or the predicted values, rows x classes(): a row for each sample, token
  // or point.
  virtual void forward(std::span<const float> parameters, const Batch& batch, std::span<float> logits,
                       Workspace& workspace) const = 0;
  // Reads a text token by token with the first `ranks` of the adapters. The parameters and the model must
  // outlive it. Null: the model has no faster way than forward().
  virtual std::unique_ptr<TextDecoder> make_decoder(std::span<const float> parameters,
                                                    std::size_t ranks) const;
  // Size of the representation of a sample: the input of the last layer with parameters. 0: the model has
  // none that training could change.
  virtual std::size_t representation() const { return 0; }
  // Writes the representations, rows x representation(). Only if that is not 0.
  virtual void represent(std::span<const float> parameters, const Batch& batch, std::span<float> out,
                         Workspace& workspace) const;

 protected:
  std::shared_ptr<const ParameterLayout> layout_;
  std::size_t input_size_ = 0;
  std::size_t classes_ = 0;

 private:
  friend Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, const InputShape& input,
                                                   const TargetShape& target);
  ModelSpec spec_;
  InputShape input_;
  TargetKind target_ = TargetKind::kClass;
};

// Builds the model for these inputs. kInvalid, naming the key, if that is impossible: for example a CNN over
// flat inputs, or too many parameters.
Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, const InputShape& input,
                                          const TargetShape& target);
// The same for data with this number of classes, or of tokens.
Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, const InputShape& input,
                                          std::size_t classes);

}  // namespace fedge::learn
