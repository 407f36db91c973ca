// Scratch of one thread for a transformer; private to transformer.cc. Size: about (16 width + heads *
// context) floats per token and layer, and (11 width + vocabulary) more per token, for kBlockTokens tokens,
// whatever the batch size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/aligned_buffer.h"
#include "learn/models/adapters.h"
#include "learn/models/transformer.h"

namespace fedge::learn {

// The values that a block's forward pass keeps for its backward pass, for one block of sequences.
struct Activations {
  Activations(const TransformerShape& s, std::size_t tokens, std::size_t sequences)
      : x(tokens * s.width),
        normed1(tokens * s.width),
        qkv(tokens * 3 * s.width),
        probabilities(sequences * s.heads * s.context * s.context),
        attended(tokens * s.width),
        x2(tokens * s.width),
        normed2(tokens * s.width),
        raised(tokens * 4 * s.width),
        bent(tokens * 4 * s.width),
        statistics1(tokens),
        statistics2(tokens) {}

  AlignedBuffer<float> x;
  AlignedBuffer<float> normed1;
  AlignedBuffer<float> qkv;
  AlignedBuffer<float> probabilities;
  AlignedBuffer<float> attended;
  AlignedBuffer<float> x2;
  AlignedBuffer<float> normed2;
  AlignedBuffer<float> raised;  // before GELU
  AlignedBuffer<float> bent;    // after GELU
  std::vector<NormStatistics> statistics1;
  std::vector<NormStatistics> statistics2;
};

class TransformerSpace final : public Workspace {
 public:
  TransformerSpace(const TransformerShape& s, const Adapters& adapters, std::size_t max_batch)
      : sequences(std::min(max_batch, std::max<std::size_t>(1, kBlockTokens / s.context))),
        x(sequences * s.context * s.width),
        normed(x.size()),
        statistics(sequences * s.context),
        logits(sequences * s.context * s.vocabulary),
        dx(x.size()),
        dnormed(x.size()),
        dqkv(3 * x.size()),
        dbent(4 * x.size()),
        square(s.context * s.context),
        scratch(kProductScratch),
        adapter(adapters.make_space(sequences * s.context)) {
    for (std::size_t i = 0; i < s.layers; ++i) blocks.emplace_back(s, sequences * s.context, sequences);
  }

  std::size_t sequences;  // sequences processed at a time
  std::vector<Activations> blocks;
  AlignedBuffer<float> x;  // after the last block
  AlignedBuffer<float> normed;
  std::vector<NormStatistics> statistics;
  AlignedBuffer<float> logits;
  AlignedBuffer<float> dx;
  AlignedBuffer<float> dnormed;
  AlignedBuffer<float> dqkv;
  AlignedBuffer<float> dbent;
  AlignedBuffer<float> square;
  AlignedBuffer<float> scratch;
  AdapterSpace adapter;
};

}  // namespace fedge::learn
