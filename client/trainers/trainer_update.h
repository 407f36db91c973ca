// The model that a trainer program sends back, checked and turned into an update. A pure function of bytes.
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
// over the coverage (coverage.count() floats); what lies outside is checked and otherwise passed over.
// kInvalid, kCorrupt, kUnsupported: not such a file, a tensor that is missing, left over, of another type or
// shape, there twice, or with a value that is not finite; the tensor is named.
Result<void> trained_difference(std::span<const std::byte> payload, const TrainedFrom& from,
                                std::span<float> update);

}  // namespace fedge::client
