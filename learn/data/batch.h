// Batch: samples side by side, as input of a model. BatchBuffer reads them from a Dataset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "learn/data/dataset.h"
#include "learn/token.h"

namespace fedge::learn {

// A mini-batch. For a classifier, `inputs` has a row of the input's size for each label. For a language model
// it has sequences of tokens, and for each token its target, or kNoToken where nothing is predicted.
struct Batch {
  std::span<const float> inputs;
  std::span<const Label>
      labels;  // of samples, or of all points of each; may be empty if only scores are needed
  std::span<const Token> tokens;
  std::span<const Token> targets;  // may be empty likewise
  std::size_t length = 0;          // of each sequence; 0: the model's context
  std::size_t samples = 0;         // in a batch that is no text
  TargetKind kind = TargetKind::kClass;
  std::span<const float> values;  // kLabels, kValues: samples x outputs
};

// The order in which a training takes its samples: each epoch e is shuffled once more, from rng.fork("epoch",
// e). The last batch of an epoch may be smaller.
class BatchOrder {
 public:
  BatchOrder(std::span<const std::uint32_t> samples, std::size_t batch_size, const Rng& rng)
      : samples_(samples.begin(), samples.end()), batch_size_(batch_size), rng_(rng) {}
  // The samples of the next batch, which are valid until the next call. There must be samples.
  std::span<const std::uint32_t> next();
  // All samples, in the order of the present epoch.
  std::span<const std::uint32_t> all() const { return samples_; }

 private:
  std::vector<std::uint32_t> samples_;
  std::size_t batch_size_;
  Rng rng_;
  std::size_t epoch_ = 0;  // number of epochs begun
  std::size_t taken_ = 0;  // samples of the present epoch
};

// Memory for one batch at a time. Shorter sequences are padded with token 0 and target kNoToken.
class BatchBuffer {
 public:
  // `width`: size of a sample, in floats or tokens.
  BatchBuffer(std::size_t width, bool text, std::size_t max_samples);

  // Reads at most max_samples and normalises their columns by `by`; if it is null or empty, as the data says.
  // The result is valid until the next call. `flip` replaces every label by classes - 1 - label, every target
  // likewise, and a value by its negative.
  Batch read(const Dataset& data, std::span<const std::uint32_t> samples, bool flip = false,
             const Normalisation* by = nullptr);

 private:
  Batch read_text(const Dataset& data, std::span<const std::uint32_t> samples, bool flip);
  // Reads what the samples have instead of a class.
  void read_targets(const Targets& from, std::span<const std::uint32_t> samples, bool flip,
                    const FeatureColumns& columns, const Normalisation& by, Batch& batch);

  std::size_t width_;  // size of a sample, in floats or tokens
  bool text_;
  AlignedBuffer<float> inputs_;
  std::vector<Label> labels_;
  std::vector<float> values_;
  std::vector<Token> tokens_;
  std::vector<Token> targets_;
};

}  // namespace fedge::learn
