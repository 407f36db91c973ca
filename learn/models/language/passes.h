// The passes of a whole transformer over one piece of a batch, made of those of its blocks; private to this
// folder.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "core/check.h"
#include "learn/model.h"
#include "learn/models/language/block.h"
#include "learn/models/loss.h"
#include "learn/token.h"

namespace fedge::learn {

// The parts of a transformer. Immutable once it is built.
struct TransformerParts {
  TransformerShape shape;
  RotaryTable rotary;
  Adapters adapters;
  TransformerPlaces places;

  std::size_t length_of(const Batch& batch) const { return batch.length == 0 ? shape.context : batch.length; }
  Pass pass(std::span<const float> parameters, std::size_t length, std::size_t rows, TransformerSpace& space,
            float* gradient) const;
};

// Calls visit(first, count) for ranges of a batch's tokens: whole sequences that fit into the workspace.
template <class Visit>
void visit_pieces(const TransformerParts& parts, const Batch& batch, const TransformerSpace& space,
                  const Visit& visit) {
  const std::size_t length = parts.length_of(batch);
  FEDGE_CHECK(length <= parts.shape.context && batch.tokens.size() % length == 0, "whole sequences");
  const std::size_t most = space.sequences * length;
  for (std::size_t first = 0; first < batch.tokens.size(); first += most)
    visit(first, std::min(most, batch.tokens.size() - first));
}

// Whether a layer's own parameters are trained.
bool trains(const Pass& pass, std::size_t layer);

// Writes the inputs of the first block.
void embed(const Pass& pass, std::span<const Token> tokens);
// Adds the gradient of the embedding.
void embed_backward(const Pass& pass, std::span<const Token> tokens);
// Runs the blocks first + 1 .. last.
void blocks_forward(const Pass& pass, std::size_t first, std::size_t last);
// Turns the gradient with respect to the outputs of block `last`, in space.dx, into that with respect to the
// inputs of block first + 1, as far as it is needed.
void blocks_backward(const Pass& pass, std::size_t first, std::size_t last);
// Writes the scores of all tokens, from the outputs of the last block.
void head_forward(const Pass& pass, const float* x, float* logits);
// Adds the loss of tokens first, first + 1, ... of the batch, and writes the gradient with respect to x, the
// outputs of the last block, to space.dx.
void head_loss(const Pass& pass, const float* x, std::size_t first, TokenLoss& loss);

}  // namespace fedge::learn
