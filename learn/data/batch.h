// Batch: samples side by side, as a model takes them; BatchBuffer reads them out of a Dataset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "learn/data/dataset.h"
#include "learn/token.h"

namespace fedge::learn {

// A mini-batch. Of a classifier: `inputs` holds a row of the input's size for each label. Of a language
// model: sequences of tokens, and for each token its target, or kNoToken where nothing is predicted.
struct Batch {
  std::span<const float> inputs;
  std::span<const std::uint8_t> labels;  // may be empty where only scores are asked for
  std::span<const Token> tokens;
  std::span<const Token> targets;  // the same
  std::size_t length = 0;          // of each sequence; 0: the model's context
};

// Memory for one batch at a time. A sequence that is shorter than the others is filled up with token 0,
// which nothing is predicted from.
class BatchBuffer {
 public:
  // `width`: of a sample, in floats, or in tokens of a text.
  BatchBuffer(std::size_t width, bool text, std::size_t max_samples);

  // At most max_samples; lent until the next call. flip: every label or target counted from the other end.
  Batch read(const Dataset& data, std::span<const std::uint32_t> samples, bool flip = false);

 private:
  Batch read_text(const Dataset& data, std::span<const std::uint32_t> samples, bool flip);

  std::size_t width_;  // of a sample: floats, or tokens
  bool text_;
  AlignedBuffer<float> inputs_;
  std::vector<std::uint8_t> labels_;
  std::vector<Token> tokens_;
  std::vector<Token> targets_;
};

}  // namespace fedge::learn
