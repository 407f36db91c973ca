#include "learn/data/batch.h"

#include <algorithm>

#include "core/check.h"

namespace fedge::learn {

BatchBuffer::BatchBuffer(std::size_t width, bool text, std::size_t max_samples)
    : width_(width),
      text_(text),
      inputs_(text_ ? 0 : max_samples * width_),
      labels_(max_samples),
      tokens_(text_ ? max_samples * width_ : 0),
      targets_(tokens_.size()) {}

Batch BatchBuffer::read(const Dataset& data, std::span<const std::uint32_t> samples, bool flip,
                        const Normalisation* by) {
  FEDGE_CHECK(samples.size() <= labels_.size() && data.shape.size() == width_ && data.shape.tokens == text_,
              "a batch that the buffer was made for");
  if (text_) return read_text(data, samples, flip);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    data.read_inputs(samples[i], inputs_.span().subspan(i * width_, width_));
    const Label label = data.labels[samples[i]];
    labels_[i] = flip ? static_cast<Label>(data.classes - 1 - label) : label;
  }
  const bool own = by == nullptr || by->empty();
  if (!data.columns.empty())
    normalise(data.columns, own ? data.normalisation : *by, inputs_.span().first(samples.size() * width_));
  return {.inputs = inputs_.span().first(samples.size() * width_),
          .labels = std::span(labels_).first(samples.size())};
}

Batch BatchBuffer::read_text(const Dataset& data, std::span<const std::uint32_t> samples, bool flip) {
  const TextInputs& text = data.text;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Token* from = text.tokens.data() + text.windows[samples[i]].start;
    const std::size_t length = text.windows[samples[i]].targets;
    Token* tokens = tokens_.data() + i * width_;
    Token* targets = targets_.data() + i * width_;
    std::fill_n(std::copy_n(from, length, tokens), width_ - length, Token{0});
    std::fill_n(std::copy_n(from + 1, length, targets), width_ - length, kNoToken);
    if (flip)
      for (std::size_t t = 0; t < length; ++t)
        targets[t] = static_cast<Token>(text.vocabulary - 1 - targets[t]);
  }
  return {.tokens = std::span(tokens_).first(samples.size() * width_),
          .targets = std::span(targets_).first(samples.size() * width_)};
}

}  // namespace fedge::learn
