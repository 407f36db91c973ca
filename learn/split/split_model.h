// SplitModel: a model whose forward and backward pass can stop between two blocks, so that two machines share
// them (split learning; Vepakomma et al. 2018). With h the activations behind block `cut` and z those behind
// the last block, a step of one piece of a batch is
//   lower_forward -> h;  upper_forward: h -> z;  head: z -> loss and dz;  upper_backward: dz -> dh;
//   lower_backward
// and gives the bits of Model::loss_and_gradient(), whose order of operations it keeps. A piece is some whole
// sequences. What a forward pass leaves in the workspace is there until the next pass. Thread-safe, as Model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/coverage.h"
#include "learn/model.h"
#include "learn/token.h"

namespace fedge::learn {

// Whole sequences of a batch.
struct SplitPiece {
  std::size_t cut = 0;     // block behind which the model is cut, from 1 on
  std::size_t first = 0;   // first token of the piece in its batch
  std::size_t rows = 0;    // tokens
  std::size_t length = 0;  // tokens of a sequence
};

class SplitModel {
 public:
  virtual ~SplitModel() = default;
  virtual std::size_t blocks() const = 0;
  // Floats of a token's activations.
  virtual std::size_t width() const = 0;
  // Sequences of each piece but the last of a batch, with a workspace for batches of `max_batch`.
  virtual std::size_t sequences(std::size_t max_batch) const = 0;
  // Calls visit(piece) for all pieces of a batch in their order.
  virtual void for_each_piece(const Batch& batch, std::size_t cut, const Workspace& workspace,
                              const std::function<bool(const SplitPiece&)>& visit) const = 0;
  // Sets the gradients to 0 that backward passes add to, which are those of the adapters.
  virtual void clear_gradient(std::span<float> gradient) const = 0;

  // Writes the inputs of the first block, rows x width().
  virtual void embed(std::span<const float> parameters, const Batch& batch, const SplitPiece& piece,
                     std::span<float> out, Workspace& workspace) const = 0;
  // `h` and `z`: rows x width().
  virtual void lower_forward(std::span<const float> parameters, const Batch& batch, const SplitPiece& piece,
                             std::span<float> h, Workspace& workspace) const = 0;
  virtual void upper_forward(std::span<const float> parameters, const SplitPiece& piece,
                             std::span<const float> h, std::span<float> z, Workspace& workspace) const = 0;
  // Turns z into its gradient. `targets`: of the piece; each below the vocabulary's size, or kNoToken.
  // `total`: number of targets of the whole batch. Writes the sum of losses of each sequence.
  virtual void head(std::span<const float> parameters, const SplitPiece& piece,
                    std::span<const Token> targets, std::size_t total, std::span<float> z,
                    std::span<double> losses, Workspace& workspace) const = 0;
  // Turns dz into dh, and adds to the gradient.
  virtual void upper_backward(std::span<const float> parameters, const SplitPiece& piece,
                              std::span<const float> dz, std::span<float> dh, std::span<float> gradient,
                              Workspace& workspace) const = 0;
  virtual void lower_backward(std::span<const float> parameters, const SplitPiece& piece,
                              std::span<const float> dh, std::span<float> gradient,
                              Workspace& workspace) const = 0;
};

}  // namespace fedge::learn
