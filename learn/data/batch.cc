#include "learn/data/batch.h"

#include <algorithm>
#include <cstddef>

#include "core/check.h"

namespace fedge::learn {

BatchBuffer::BatchBuffer(std::size_t width, bool text, std::size_t max_samples)
    : width_(width),
      text_(text),
      inputs_(text_ ? 0 : max_samples * width_),
      labels_(max_samples),
      tokens_(text_ ? max_samples * width_ : 0),
      targets_(tokens_.size()) {}

std::span<const std::uint32_t> BatchOrder::next() {
  if (epoch_ == 0 || taken_ == samples_.size()) {
    Rng shuffle = rng_.fork("epoch", epoch_++);
    shuffle.shuffle(std::span(samples_));
    taken_ = 0;
  }
  const std::size_t count = std::min(batch_size_, samples_.size() - taken_);
  const auto batch = std::span<const std::uint32_t>(samples_).subspan(taken_, count);
  taken_ += count;
  return batch;
}

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
  const Normalisation& used = by == nullptr || by->empty() ? data.normalisation : *by;
  Batch batch{.inputs = inputs_.span().first(samples.size() * width_),
              .labels = std::span(labels_).first(samples.size()),
              .samples = samples.size()};
  if (!data.columns.empty()) normalise(data.columns, used, inputs_.span().first(samples.size() * width_));
  if (data.targets.shape.kind != TargetKind::kClass)
    read_targets(data.targets, samples, flip, data.columns, used, batch);
  return batch;
}

void BatchBuffer::read_targets(const Targets& from, std::span<const std::uint32_t> samples, bool flip,
                               const FeatureColumns& columns, const Normalisation& by, Batch& batch) {
  batch.kind = from.shape.kind;
  if (from.shape.kind == TargetKind::kPoints) {
    const std::size_t points = from.shape.points;
    labels_.resize(std::max(labels_.size(), samples.size() * points));
    for (std::size_t i = 0; i < samples.size() * points; ++i) {
      const Label label = from.points[samples[i / points] * points + i % points];
      labels_[i] = flip ? static_cast<Label>(from.shape.outputs - 1 - label) : label;
    }
    batch.labels = std::span(labels_).first(samples.size() * points);
    return;
  }
  const std::size_t size = from.shape.outputs;
  values_.resize(std::max(values_.size(), samples.size() * size));
  const auto values = std::span(values_).first(samples.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = from.values[samples[i / size] * size + i % size];
  normalise_targets(columns, by, values);
  if (flip)
    for (float& value : values) value = from.shape.kind == TargetKind::kLabels ? 1 - value : -value;
  batch.values = values;
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
