// Fashion-MNIST with some training samples poisoned, as files that a run reads like any others, so that
// whoever holds those samples is hostile without the program knowing. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "core/result.h"
#include "learn/data/dataset.h"

namespace fedge::bench {

enum class Poison {
  kNone,
  kLabelFlip,  // label y becomes 9 - y
  kBackdoor,   // a white square of 3 x 3 pixels in the upper left corner, and label 0, in the first half
};

// Writes the training set as learn::load_train reads it; the others of its samples stay as they are. 47 MB of
// memory and of disk.
Result<void> write_training_set(Poison poison, std::span<const std::uint32_t> samples,
                                const std::filesystem::path& directory);

// The test samples that are not of class 0, each with the square, as if they were of class 0: accuracy on
// them is the backdoor's success.
learn::Dataset triggered(const learn::Dataset& test);

}  // namespace fedge::bench
