// Splits: which samples of a file are for training and which for testing. A split is made where the data is:
// on the device, or in the simulator for each client. It does not depend on the run's seed, so that a model
// that continues an earlier run has not been trained on the test samples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/rng.h"
#include "learn/data/dataset.h"
#include "learn/spec.h"

namespace fedge::learn {

// kNotFound if the place of the data is unknown.
Result<void> check_place(const DataSpec& spec);

// Returns round(share * count) random samples of each label, ascending; samples of label k are drawn from
// rng.fork(purpose, k). Labels must be below `classes`.
std::vector<std::uint32_t> share_of_labels(std::span<const Label> labels, std::size_t classes, double share,
                                           const Rng& rng, std::string_view purpose);

// The test samples, ascending, if the samples are split by share or time.
std::vector<std::uint32_t> test_samples(const SplitSpec& split, std::span<const Label> labels,
                                        std::size_t classes);

// Loads one split of the data at spec.directory with `read`, which reads all samples of the given files. By
// file, these are those of the directory whose names begin with "train" or "test", perhaps none; otherwise
// all. Errors are those of files_at() and of `read`; kNotFound if no path is given, or if by file there are
// neither training nor test files; kInvalid if there are no samples.
using ReadFiles = std::function<Result<Dataset>(std::span<const std::filesystem::path>)>;
Result<Dataset> load_split(const DataSpec& spec, Split split, std::span<const std::string_view> endings,
                           const ReadFiles& read);

}  // namespace fedge::learn
