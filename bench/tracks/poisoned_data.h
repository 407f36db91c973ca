// Fashion-MNIST with some poisoned training samples, as files that a run reads like any others. A client with
// those samples is hostile although the program treats it as honest. One thread.
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
  kBackdoor,   // in the first half: label 0 and a white square of 3 x 3 pixels in the upper left corner
};

// Writes the training set in the format of learn::load_train; all samples but `samples` stay unchanged. Uses
// 47 MB of memory and of disk.
Result<void> write_training_set(Poison poison, std::span<const std::uint32_t> samples,
                                const std::filesystem::path& directory);

// Returns the test samples outside class 0, each with the square and labelled as class 0. Accuracy on them is
// the backdoor's success rate.
learn::Dataset triggered(const learn::Dataset& test);

}  // namespace fedge::bench
