// The layers of a transformer's block, and their forward and backward passes over one piece of a batch;
// private to this folder.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "learn/models/compact_weights.h"
#include "learn/models/language/rotary.h"
#include "learn/models/language/space.h"

namespace fedge::learn {

inline constexpr std::size_t kNoBias = SIZE_MAX;

// Offsets in the parameter vector.
struct NormPlace {
  std::size_t weight = 0;
  std::size_t bias = kNoBias;
};

// Consecutive matrices [outs[i], in] with the same inputs, then their biases.
struct LinearPlace {
  std::size_t weight = 0;
  std::size_t bias = kNoBias;
  std::size_t in = 0;
  std::vector<std::size_t> outs;
  std::size_t out() const;
};

struct BlockPlace {
  std::size_t layer = 0;  // TensorInfo::layer
  NormPlace norm1;
  LinearPlace qkv;
  LinearPlace o;
  NormPlace norm2;
  LinearPlace up;  // Llama: gate and up
  LinearPlace down;
};

// Where the tensors of a transformer are.
struct TransformerPlaces {
  std::size_t tokens = 0;     // token embedding
  std::size_t positions = 0;  // GPT-2: position embedding
  std::vector<BlockPlace> blocks;
  NormPlace norm;
  std::size_t norm_layer = 0;  // TensorInfo::layer
  std::size_t head = 0;        // the token embedding's if tied
};

// The parameters of one pass over one piece, and where its gradients go.
struct Pass {
  const TransformerShape& shape;
  const RotaryTable& rotary;
  const Adapters& adapters;
  const TransformerPlaces& places;
  std::span<const float> parameters;  // the adapters are read here
  const float* weights;               // all other parameters, at the same offsets
  const float* matrices;              // the matrices at the same offsets; null: `base` expands them
  const CompactWeights* base;         // holds the frozen matrices instead of `weights`, unless it is null
  std::size_t ranks = 0;              // number of the adapters' ranks in use
  std::size_t rows = 0;               // tokens of the piece
  std::size_t length = 0;             // of a sequence
  TransformerSpace& space;
  float* gradient = nullptr;  // of the whole layout; added to
};

// The gradients that a backward pass computes.
struct Wanted {
  bool weights = false;  // gradients of weights; with adapters, of theirs instead
  bool inputs = true;    // the gradient with respect to the block's inputs
};

void norm_forward(const Pass& pass, const NormPlace& norm, const float* x, float* y,
                  NormStatistics* statistics);
// Adds to space.dx the gradient through a norm, given its outputs' gradient in space.dnormed.
void norm_backward(const Pass& pass, const NormPlace& norm, const float* x, const NormStatistics* statistics,
                   const Wanted& wanted);

// Consecutive values of a matrix without adapters; `room` is used if they are compact.
const float* values_of(const Pass& pass, const Range& parameters, float* room);
// The weights of a layer with the adapters that are in use; valid until the next call.
const float* weights_of(const Pass& pass, const LinearPlace& layer);

// Reads the block's inputs x, and writes its outputs; null: only what the backward pass needs.
void block_forward(const Pass& pass, const BlockPlace& block, Activations& a, const float* x, float* out);
// Turns the gradient with respect to the outputs, in space.dx, into that with respect to the inputs.
void block_backward(const Pass& pass, const BlockPlace& block, Activations& a, const float* x,
                    const Wanted& wanted);

}  // namespace fedge::learn
