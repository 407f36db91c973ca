#include "client/trainers/trainer_predictions.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/safetensors.h"
#include "core/text.h"

namespace fedge::client {
namespace {

using learn::EvaluationSums;
using learn::TargetKind;

constexpr const char* kName = "the predictions";

struct Predictions {
  std::size_t samples = 0;
  std::vector<float> scores;
  std::vector<float> targets;
};

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text = "[";
  for (const std::size_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

// The shapes of targets and scores for n samples; those of texts have any number of tokens.
struct Expected {
  std::vector<std::size_t> targets;
  std::vector<std::size_t> scores;
};

Expected expected_shapes(const EvaluationSums::Shape& shape, const std::vector<std::size_t>& targets) {
  const std::size_t samples = targets.empty() ? 0 : targets.front();
  Expected expected{.targets = {samples}, .scores = {}};
  if (shape.text) expected.targets.push_back(targets.size() > 1 ? targets[1] : 1);
  if (shape.kind == TargetKind::kPoints) expected.targets.push_back(shape.tokens);
  expected.scores = expected.targets;
  expected.scores.push_back(shape.outputs);
  if (shape.kind == TargetKind::kLabels || shape.kind == TargetKind::kValues)
    expected.targets = expected.scores;
  return expected;
}

std::vector<float> values_of(std::span<const std::byte> payload, const SafetensorsHeader& header,
                             const TensorInfo& tensor) {
  std::vector<float> values(tensor.size);  // the bytes need not be aligned
  std::memcpy(values.data(), payload.data() + header.data_offset + tensor.offset * sizeof(float),
              tensor.size * sizeof(float));
  return values;
}

Result<Predictions> parse(std::span<const std::byte> payload, const EvaluationSums::Shape& shape) {
  FEDGE_TRY(header, parse_safetensors_header(payload, kName));
  const TensorInfo* scores = header.layout.find("scores");
  const TensorInfo* targets = header.layout.find("targets");
  if (scores == nullptr || targets == nullptr || header.layout.tensors().size() != 2)
    return invalid(
        "the predictions of the trainer program must be the two tensors \"scores\" and \"targets\"");
  const Expected expected = expected_shapes(shape, targets->shape);
  if (targets->shape != expected.targets || scores->shape != expected.scores)
    return invalid("the predictions of the trainer program have scores of shape " +
                   shape_text(scores->shape) + " and targets of shape " + shape_text(targets->shape) +
                   "; expected " + shape_text(expected.scores) + " and " + shape_text(expected.targets));
  return Predictions{expected.targets.front(), values_of(payload, header, *scores),
                     values_of(payload, header, *targets)};
}

Result<void> check_targets(const Predictions& all, const EvaluationSums::Shape& shape) {
  const auto possible = [&](float target) {
    if (shape.kind == TargetKind::kValues) return std::isfinite(target);
    if (shape.kind == TargetKind::kLabels) return target == 0 || target == 1;
    const bool is_class = target >= 0 && static_cast<double>(target) < static_cast<double>(shape.outputs) &&
                          target == std::floor(target);
    return is_class || (shape.text && target == -1);
  };
  for (const float target : all.targets)
    if (!possible(target))
      return invalid("the trainer program sent the target " + number_text(static_cast<double>(target)) +
                     "; " +
                     (shape.kind == TargetKind::kValues ? "a value must be finite"
                      : shape.kind == TargetKind::kLabels
                          ? "a label must be 0 or 1"
                          : "a class must be an integer from 0 to " + std::to_string(shape.outputs - 1)));
  return {};
}

void add(const Predictions& all, EvaluationSums& sums) {
  const EvaluationSums::Shape& shape = sums.shape();
  const std::size_t width = shape.outputs;
  for (std::size_t row = 0; row < all.scores.size() / width; ++row) {
    const auto scores = std::span(all.scores).subspan(row * width, width);
    if (shape.kind == TargetKind::kLabels) {
      (void)sums.add_labels(scores, std::span(all.targets).subspan(row * width, width));
    } else if (shape.kind == TargetKind::kValues) {
      (void)sums.add_values(scores, std::span(all.targets).subspan(row * width, width));
    } else if (all.targets[row] >= 0) {
      (void)sums.add(scores, static_cast<std::size_t>(all.targets[row]));
    }
  }
  if (!shape.steps) return;
  for (std::size_t row = 0; row < all.targets.size(); row += shape.tokens) {
    const auto targets = std::span(all.targets).subspan(row, shape.tokens);
    sums.add_events(std::span(all.scores).subspan(row * width, shape.tokens * width),
                    std::vector<std::uint32_t>(targets.begin(), targets.end()));
  }
}

}  // namespace

Result<SampleCount> count_predictions(std::span<const std::byte> payload, SampleCount most,
                                      EvaluationSums& sums) {
  FEDGE_TRY(all, parse(payload, sums.shape()));
  if (all.samples > most.value())
    return invalid("the trainer program sent predictions for more samples than it has for this task");
  FEDGE_TRY_VOID(check_targets(all, sums.shape()));
  add(all, sums);
  return SampleCount(all.samples);
}

}  // namespace fedge::client
