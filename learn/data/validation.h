// Validation samples: training samples that no client gets and that replace the test samples in every
// evaluation (data.validation). They are a pure function of the labels, the specification and the seed, so
// that coordinator, simulator and clients agree on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/rng.h"
#include "learn/data/label.h"
#include "learn/data/partition.h"
#include "learn/spec.h"

namespace fedge::learn {

// Returns round(data.validation * count) random samples of each label, ascending; none if data.validation is
// 0. `labels` must be below `classes`; `rng` is the run's root stream. kInvalid, naming data.validation, if
// it is above 0 and every label rounds to 0 samples.
Result<std::vector<std::uint32_t>> validation_samples(const DataSpec& spec, std::span<const Label> labels,
                                                      std::size_t classes, const Rng& rng);

// The complement: the samples of a data set of `count` samples that are not in `validation`, ascending.
std::vector<std::uint32_t> samples_without(std::span<const std::uint32_t> validation, std::size_t count);

// Distributes the samples that are not validation samples with partition(). The sample numbers are those of
// the whole training set. Errors are those of validation_samples() and partition().
Result<Partition> partition_for_clients(const DataSpec& spec, std::span<const Label> labels,
                                        std::size_t classes, const Rng& rng);

}  // namespace fedge::learn
