// Counts what a trainer program predicts of the samples that it evaluates. A pure function of bytes.
#pragma once

#include <cstddef>
#include <span>

#include "core/ids.h"
#include "core/result.h"
#include "learn/evaluation/sums.h"

namespace fedge::client {

// `payload` is a .safetensors file with the tensors "scores" and "targets" of n samples, and no others. With
// o outputs, their shapes and what a target is:
//   classification  n x o      n       the class, an integer
//   segmentation    n x p x o  n x p   the class of each of p points
//   texts           n x t x o  n x t   the next token, or -1 where nothing is predicted; any t
//   multi-label     n x o      n x o   0 or 1
//   regression      n x o      n x o   the value
// Scores are those before softmax, or the predicted values; one that is not finite counts as wrong. Adds
// them to `sums` and returns n. kInvalid, kCorrupt, kUnsupported: not such a file, another shape, a target
// that cannot be, or more than `most` samples; nothing has been added then.
Result<SampleCount> count_predictions(std::span<const std::byte> payload, SampleCount most,
                                      learn::EvaluationSums& sums);

}  // namespace fedge::client
