// Targets: what a model predicts of a sample, namely its class, several labels, a class for each of its
// points, or numbers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "learn/data/label.h"

namespace fedge::learn {

// The task of the samples, data.task of a run file. Texts have none: each token is predicted.
enum class TargetKind {
  kClass,   // classification: one of the classes
  kLabels,  // multi-label: each label is set or not, independently of the others
  kPoints,  // segmentation: one of the classes for each point
  kValues   // regression: real numbers
};

// "classification", "multi-label", "segmentation" or "regression"; in the order of the kinds.
const std::vector<std::string>& task_names();

// The shape of a prediction.
struct TargetShape {
  TargetKind kind = TargetKind::kClass;
  std::size_t outputs = 0;  // classes, labels, values, or tokens of a vocabulary
  std::size_t points = 1;   // kPoints: of a sample

  // Numbers that a model returns for a sample that is no text.
  std::size_t size() const { return outputs * points; }
  bool operator==(const TargetShape&) const = default;
  const std::string& task() const { return task_names()[static_cast<std::size_t>(kind)]; }
  // Whether a sample has values instead of classes.
  bool has_values() const { return kind == TargetKind::kLabels || kind == TargetKind::kValues; }
  // Number of groups that the samples of such data have as labels.
  std::size_t groups() const { return has_values() ? 1 : outputs; }
};

// The targets of samples, unless each has only a class.
struct Targets {
  TargetShape shape{};
  std::vector<Label> points{};  // kPoints: samples x shape.points, each < shape.outputs
  std::vector<float> values{};  // kValues, kLabels: samples x shape.outputs; labels are 0 or 1
  // kValues: the deviation by which each value was divided; kPoints: the seconds from a point of a sequence
  // to the next. Empty: none.
  std::vector<float> scale{};

  // The same without samples.
  Targets none() const { return {.shape = shape, .scale = scale}; }
  // Adds the targets of sample `i` of `from`, which has the same shape.
  void append(const Targets& from, std::size_t i);
};

}  // namespace fedge::learn
