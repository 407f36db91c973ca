// Scratch of one thread for a transformer; private to this folder. Its size does not depend on the batch.
// With N = max(kBlockTokens, context) tokens, training needs N times (7 width + 3 hidden + heads * context)
// floats for each layer, about; with `recompute` only N * width for each layer, and the rest once. A forward
// pass alone needs the rest once. Then there are kLogits floats for scores. Memory is allocated when it is
// needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/aligned_buffer.h"
#include "learn/models/adapters.h"
#include "learn/models/language/transformer.h"

namespace fedge::learn {

// The scores of as many tokens are computed at a time as fit into this many floats; at least of kLeastRows.
inline constexpr std::size_t kLogits = std::size_t{1} << 23;
inline constexpr std::size_t kLeastRows = 16;
// A compact head is expanded for as many tokens of the vocabulary at a time: whole blocks of product(), so
// that the results are those of one product, bit for bit.
inline constexpr std::size_t kHeadTokens = 768;
static_assert(kHeadTokens % kInnerBlock == 0 && kHeadTokens % kColumnBlock == 0);

// The values that a block's forward pass keeps for its backward pass, for one piece of a batch.
struct Activations {
  Activations(const TransformerShape& s, std::size_t tokens, std::size_t sequences)
      : normed1(tokens * s.width),
        qkv(tokens * s.qkv()),
        probabilities(sequences * s.heads * s.context * s.context),
        attended(tokens * s.width),
        x2(tokens * s.width),
        normed2(tokens * s.width),
        raised(tokens * s.raised()),
        bent(tokens * s.hidden),
        statistics1(tokens),
        statistics2(tokens) {}

  AlignedBuffer<float> normed1;
  AlignedBuffer<float> qkv;
  AlignedBuffer<float> probabilities;
  AlignedBuffer<float> attended;
  AlignedBuffer<float> x2;
  AlignedBuffer<float> normed2;
  AlignedBuffer<float> raised;  // before the curve
  AlignedBuffer<float> bent;    // after it
  std::vector<NormStatistics> statistics1;
  std::vector<NormStatistics> statistics2;
};

class TransformerSpace final : public Workspace {
 public:
  TransformerSpace(const TransformerShape& s, const Adapters& adapters, std::size_t max_batch)
      : sequences(s.sequences(max_batch)),
        tokens(sequences * s.context),
        scored(std::min(tokens, std::max(kLeastRows, kLogits / s.vocabulary))),
        normed(tokens * s.width),
        statistics(tokens),
        logits(scored * s.vocabulary),
        scratch(kProductScratch),
        adapter(adapters.make_space(tokens)),
        merged(adapters.empty() ? 0 : s.width * std::max({s.qkv(), s.raised(), kHeadTokens})),
        shape_(s) {}

  // Makes room for a forward pass through this number of consecutive blocks; `trains`: which a backward pass
  // follows.
  void prepare(bool trains, std::size_t passed) {
    const std::size_t floats = tokens * shape_.width;
    grow(inputs, trains ? passed + 1 : 2, floats);
    while (blocks.size() < (trains && !recompute ? passed : 1))
      blocks.emplace_back(shape_, tokens, sequences);
    if (!trains || dx.size() > 0) return;
    dx = AlignedBuffer<float>(floats);
    dnormed = AlignedBuffer<float>(floats);
    dqkv = AlignedBuffer<float>(tokens * shape_.qkv());
    draised = AlignedBuffer<float>(tokens * shape_.raised());
    if (shape_.llama) dbent = AlignedBuffer<float>(tokens * shape_.hidden);
    square = AlignedBuffer<float>(shape_.context * shape_.context);
  }

  // The inputs of a block, or the outputs of the last one.
  float* input(std::size_t block) { return inputs[block % inputs.size()].data(); }
  Activations& activations(std::size_t block) { return blocks[block % blocks.size()]; }

  std::size_t sequences;                     // processed at a time
  std::size_t tokens;                        // of these sequences
  std::size_t scored;                        // tokens whose scores are computed at a time
  std::vector<AlignedBuffer<float>> inputs;  // of each block, or of every other one
  std::vector<Activations> blocks;           // of each block, or of the one that was computed last
  AlignedBuffer<float> normed;
  std::vector<NormStatistics> statistics;
  AlignedBuffer<float> logits;
  AlignedBuffer<float> dx;
  AlignedBuffer<float> dnormed;
  AlignedBuffer<float> dqkv;
  AlignedBuffer<float> draised;
  AlignedBuffer<float> dbent;  // Llama; GPT-2's curve is differentiated in place
  AlignedBuffer<float> square;
  AlignedBuffer<float> scratch;
  AdapterSpace adapter;
  AlignedBuffer<float> merged;  // one layer's weights with their adapters, or part of a compact head

 private:
  static void grow(std::vector<AlignedBuffer<float>>& buffers, std::size_t count, std::size_t floats) {
    while (buffers.size() < count) buffers.emplace_back(floats);
  }

  const TransformerShape& shape_;
};

}  // namespace fedge::learn
