// Evaluation of a model on a data set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/parallel.h"
#include "learn/data/dataset.h"
#include "learn/model.h"

namespace fedge::learn {

struct Evaluation {
  std::uint64_t samples = 0;
  double loss = 0;                         // mean cross-entropy of what is predicted: of a sample, or a token
  double accuracy = 0;                     // fraction right, ties to the lower class
  std::vector<double> per_class_accuracy;  // classes; not a number for one without samples
  // Over classes with at least two samples; 0 if there are none. The population variance of the classes' mean
  // losses, and the mean of the variances (of the sample: n - 1) of the losses within each class.
  double between_class_variance = 0;
  double within_class_variance = 0;
  // Of a text: the whole loss in bits over the bytes that were predicted, and the mean of the same over the
  // groups that have any. 0 for other data.
  double bits_per_byte = 0;
  double group_bits_per_byte = 0;
};

// The same numbers whatever parallel.width() is. `ranks`: how many of the model's adapters run.
Evaluation evaluate(const Model& model, std::span<const float> parameters, const Dataset& data,
                    Parallel& parallel, std::size_t ranks = SIZE_MAX);

}  // namespace fedge::learn
