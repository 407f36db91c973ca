// Operation: one layer of a network, with its forward and backward passes. Immutable; the scratch of a thread
// is in its OperationSpace. Activations are float32, samples x points x channels: an image has height * width
// points, a sequence has steps, anything else has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/parameters.h"
#include "core/result.h"
#include "core/rng.h"
#include "learn/kernels/kernels.h"
#include "learn/layers/layer_spec.h"
#include "learn/model.h"
#include "learn/models/adapters.h"
#include "learn/models/layers.h"
#include "learn/trained_rows.h"

namespace fedge::learn {

// Shape of a sample's activation.
struct LayerShape {
  enum class Rank { kFlat, kSequence, kImage };
  Rank rank = Rank::kFlat;
  std::size_t height = 1;  // images only
  std::size_t width = 1;   // of an image; steps of a sequence
  std::size_t channels = 1;
  bool tokens = false;  // of a text: one for each step, instead of channels

  std::size_t points() const { return height * width; }
  std::size_t size() const { return points() * channels; }
  bool operator==(const LayerShape&) const = default;
  // "28x28x32", "104 steps x 6", "128", "80 tokens".
  std::string text() const;
};

// The shape as a sequence, if it can be read as one: a vector as steps of one number, an image of one channel
// (an array of steps x numbers) by its lines. Otherwise unchanged.
LayerShape as_sequence(const LayerShape& shape);

// The arguments from which an operation is made.
struct LayerContext {
  const LayerSpec& spec;
  const std::string& name;           // of the layer
  std::span<const LayerShape> from;  // at least one
  std::size_t outputs;               // of a prediction of the data
  bool text;                         // the model's inputs are texts: an output must depend on no later token
  std::uint32_t index;               // of its parameters: TensorInfo::layer
  bool trainable;
  ParameterLayout& layout;  // gets its tensors

  std::size_t units() const { return spec.units > 0 ? spec.units : outputs; }
};

// The scratch of one thread for one operation.
class OperationSpace {
 public:
  virtual ~OperationSpace() = default;
};

struct ForwardPass {
  const Kernels& kernels;
  std::span<const float> parameters;  // of the whole model
  std::size_t rows;                   // samples
  std::size_t points;                 // of its output; of a text, the tokens of the batch's sequences
  std::span<const float* const> x;
  float* y;
  std::span<const Token> tokens{};
  const Rng* draws = nullptr;  // of this operation in this step; null: the pass is not for training
  float* scratch = nullptr;    // kProductScratch floats, if it needs_scratch()
};

// The adapters of a model in one backward pass; all its other parameters are frozen.
class AdapterRun {
 public:
  virtual ~AdapterRun() = default;
  // Adds the gradient of the adapter of the matrix at `weight`, if it has one. Returns the multiply-adds.
  virtual std::uint64_t add_gradient(std::size_t weight, const AdapterPass& pass, const Kernels& kernels,
                                     float* gradient) const = 0;
};

struct BackwardPass {
  const Kernels& kernels;
  const float* parameters;  // of the whole model
  std::size_t rows;
  std::size_t points;
  std::span<const float* const> x;
  const float* y;
  float* dy;                   // gradient with respect to y; may be overwritten
  std::span<float* const> dx;  // written; null if not needed
  bool moves;                  // whether any of its parameters are trained
  const TrainedRows& trained;
  const Destination& destination;
  float* gradient;  // scratch as long as its parameters
  std::span<const Token> tokens{};
  std::uint32_t index = 0;               // TensorInfo::layer
  const AdapterRun* adapters = nullptr;  // null: the model has none
  float* scratch = nullptr;              // kProductScratch floats, if it needs_scratch()
};

class Operation {
 public:
  virtual ~Operation() = default;

  const LayerShape& shape() const { return shape_; }
  // Whether it has parameters.
  virtual bool has_parameters() const { return false; }
  // Offset of the weight matrix that may have an adapter; SIZE_MAX if it has none.
  virtual std::size_t adapted() const { return SIZE_MAX; }
  // Whether backward() reads y; and whether y may be x, and dx be dy.
  virtual bool reads_output() const { return false; }
  virtual bool in_place() const { return false; }
  // Whether its passes multiply matrices, for which they need scratch.
  virtual bool needs_scratch() const { return false; }
  // How often a forward pass over one sample uses each of its weights.
  virtual double uses() const { return static_cast<double>(shape_.points()); }
  virtual void initialise(std::span<float>, Rng, Initialisation) const {}
  // Null if it needs none.
  virtual std::unique_ptr<OperationSpace> make_space(std::size_t) const { return nullptr; }
  virtual void forward(const ForwardPass& pass, OperationSpace* space) const = 0;
  // Writes dx, then the trained parameters of the destination.
  virtual Products backward(const BackwardPass& pass, OperationSpace* space) const = 0;

 protected:
  LayerShape shape_;
};

using MadeOperation = Result<std::unique_ptr<Operation>>;
template <class Kind, class... Arguments>
MadeOperation make_operation(Arguments&&... arguments) {
  return std::unique_ptr<Operation>(std::make_unique<Kind>(std::forward<Arguments>(arguments)...));
}

// Adds a tensor of the layer to the layout. kInvalid if it would have more than 2^32 numbers.
Result<TensorInfo> add_tensor(const LayerContext& context, const char* name, std::vector<std::size_t> shape);
// Fills the weights of a layer with this many inputs and outputs of each unit, and its bias, which may be
// empty.
struct Fan {
  std::size_t in;
  std::size_t out;
};
void initialise_weights(std::span<float> weights, std::span<float> bias, const Fan& fan, Rng rng,
                        Initialisation how);
// Applies the gradient of the tensor at `offset` to the trained parameters of the destination.
void apply_gradient(const BackwardPass& pass, std::size_t offset, std::size_t size, const float* gradient);
// "model.layer[3]: a conv2d needs ..."
Error layer_error(const LayerContext& context, const std::string& message);

}  // namespace fedge::learn
