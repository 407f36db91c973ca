// ArraySchema: which arrays of a file are the inputs and the targets of samples, and how their values become
// numbers. It is declared by the run file, so that every device makes the same samples from its own arrays.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "learn/data/dataset.h"

namespace fedge::learn {

struct ArraySchema {
  std::string inputs = "x";  // arrays
  std::string targets = "y";
  InputShape shape;
  bool channels_first = false;  // in the file; a Dataset always has the channels last
  // A feature becomes (value - mean) / deviation, with those of its channel. One number for each channel, or
  // one for all; empty: 0 and 1.
  std::vector<double> mean;
  std::vector<double> deviation;
  TargetKind task = TargetKind::kClass;
  std::size_t classes = 0;               // or labels
  std::vector<std::string> class_names;  // may be empty
  std::size_t points = 1;                // kPoints: of a sample
  double point_seconds = 0;              // kPoints: from a point to the next; 0: unknown
  std::size_t values = 1;                // kValues: of a sample
  // A value becomes (value - mean) / deviation, as a feature does.
  std::vector<double> target_mean;
  std::vector<double> target_deviation;
  bool raw = false;  // the values are normalised when they are used
  // Each number of the steps gets mean 0 and deviation 1 over its sample, and every step gets another number:
  // log10(1e-6 + the mean of these deviations).
  bool standardise = false;

  // The shape of a sample in the data set.
  InputShape input() const { return {shape.height, shape.width + (standardise ? 1 : 0), shape.channels}; }

  // Empty unless raw: the channels, or with a single axis the features.
  FeatureColumns columns() const;
  TargetShape target() const;
  // The deviation of each value, or the distance of two points; empty: 1.
  std::vector<float> target_scale() const;
};

// Reads the options of [data] for arrays.
ArraySchema read_array_schema(config::Reader& section);

}  // namespace fedge::learn
