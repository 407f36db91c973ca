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
};

// The same numbers whatever parallel.width() is.
Evaluation evaluate(const Model& model, std::span<const float> parameters, const Dataset& data,
                    Parallel& parallel);

}  // namespace fedge::learn
