// Checks the model that a trainer program sends back and turns it into an update. A pure function of bytes.
#pragma once

#include <cstddef>
#include <span>

#include "core/coverage.h"
#include "core/parameters.h"
#include "core/result.h"

namespace fedge::client {

struct TrainedFrom {
  const ParameterLayout& layout;
  std::span<const float> model;  // layout.size()
  const Coverage& coverage;      // within the model
};

// `payload` is a .safetensors file with the model's tensors, in any order. Writes trained - model, packed
// over the coverage (coverage.count() floats); values outside it are only checked. kInvalid, kCorrupt,
// kUnsupported: not such a file, or a tensor that is missing, extra, duplicate, not finite, or of another
// type or shape. The error names the tensor.
Result<void> trained_difference(std::span<const std::byte> payload, const TrainedFrom& from,
                                std::span<float> update);

}  // namespace fedge::client
