// Evaluation of a model on a data set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/parallel.h"
#include "learn/dataset.h"
#include "learn/model.h"

namespace fedge::learn {

struct Evaluation {
  std::uint64_t samples = 0;
  double loss = 0;                         // mean cross-entropy
  double accuracy = 0;                     // fraction right, ties to the lower class
  std::vector<double> per_class_accuracy;  // classes; 0 for a class without samples
  // Over classes with at least two samples; 0 if there are none. The population variance of the classes' mean
  // losses, and the mean of the variances (of the sample: n - 1) of the losses within each class.
  double between_class_variance = 0;
  double within_class_variance = 0;
};

// The same numbers whatever parallel.width() is.
Evaluation evaluate(const Model& model, std::span<const float> parameters, const Dataset& data,
                    Parallel& parallel);

}  // namespace fedge::learn
