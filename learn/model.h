// Model: a network described by data, with hand-written forward and backward over views of a flat
// parameter vector. Stateless and shared between threads; scratch memory is the caller's Workspace.
// Initialisation is PyTorch's default (uniform +-1/sqrt(fan_in), weights and biases), a transformer's its
// own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/parameters.h"
#include "core/rng.h"
#include "learn/data/batch.h"
#include "learn/data/dataset.h"
#include "learn/spec.h"
#include "learn/trained_rows.h"

namespace fedge::learn {

class Adapters;

// Cross-entropy of a batch.
struct BatchLoss {
  float mean = 0;      // over the samples, or over the targets
  double squares = 0;  // the sum of the squares of its samples' losses; a sequence's is its targets' mean
  bool operator==(const BatchLoss&) const = default;
};

// Multiply-adds that backward passes have issued, counted where they are. A convolution issues none for
// gradients that are zero.
struct Products {
  std::uint64_t weights = 0;  // for gradients of weights
  std::uint64_t inputs = 0;   // for gradients of a layer's inputs
  Products& operator+=(const Products& more) {
    weights += more.weights;
    inputs += more.inputs;
    return *this;
  }
};

// Scratch of one thread for one model, sized for a largest batch; no allocation inside a step.
class Workspace {
 public:
  virtual ~Workspace() = default;

  // What a backward pass computes; every row of the model at first. Rows that are left out cost nothing:
  // no weight gradient, and no input gradient below the lowest layer of which something is trained.
  TrainedRows trained;
  // How many ranks of the model's adapters run and are trained; more than there are: all of them.
  std::size_t ranks = SIZE_MAX;
  Products products;  // of all backward passes so far
};

class Model {
 public:
  virtual ~Model() = default;

  const std::shared_ptr<const ParameterLayout>& layout() const { return layout_; }
  // Of a sample: floats, or tokens.
  std::size_t input_size() const { return input_size_; }
  // What is told apart: classes, or tokens of a vocabulary.
  std::size_t classes() const { return classes_; }
  // Predictions for a sample: one, or one a token.
  virtual std::size_t outputs_per_sample() const { return 1; }
  // Null without adapters; with them all else is frozen.
  virtual const Adapters* adapters() const { return nullptr; }
  // What make_model() made it from.
  const ModelSpec& spec() const { return spec_; }
  const InputShape& input() const { return input_; }

  // Fills all parameters from fork("init", layer) streams of `rng`.
  virtual void initialise(std::span<float> parameters, const Rng& rng) const = 0;
  virtual std::unique_ptr<Workspace> make_workspace(std::size_t max_batch) const = 0;

  // The batch's loss; overwrites `gradient` (layout().size() floats) with the derivative of its mean,
  // in the rows that the workspace says are trained and nowhere else; a transformer's in all that is not
  // frozen.
  virtual BatchLoss loss_and_gradient(std::span<const float> parameters, const Batch& batch,
                                      std::span<float> gradient, Workspace& workspace) const = 0;
  // Whether sgd_step() may be called.
  virtual bool steps_in_place() const { return false; }
  // One plain SGD step in place, w <- (1 - learning_rate * weight_decay) w - learning_rate * gradient,
  // without storing the gradient; returns the loss before the step. Moves the trained rows alone.
  virtual BatchLoss sgd_step(std::span<float> parameters, const Batch& batch, float learning_rate,
                             float weight_decay, Workspace& workspace) const;
  // Scores before softmax, rows x classes(): a row for each of the inputs, or of the tokens.
  virtual void forward(std::span<const float> parameters, const Batch& batch, std::span<float> logits,
                       Workspace& workspace) const = 0;

 protected:
  std::shared_ptr<const ParameterLayout> layout_;
  std::size_t input_size_ = 0;
  std::size_t classes_ = 0;

 private:
  friend Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, const InputShape& input,
                                                   std::size_t classes);
  ModelSpec spec_;
  InputShape input_;
};

// Builds the model for these inputs; an impossible one (a CNN over flat inputs, too many
// parameters) is kInvalid and names the key.
Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, const InputShape& input,
                                          std::size_t classes);

}  // namespace fedge::learn
