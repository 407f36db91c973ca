// Checks of what a data source returns. Training and evaluation rely on these properties and do not check
// them again. Errors are kInvalid and begin with `function`, the source's function: "load() returned ...".
// Cost: one pass over the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/result.h"
#include "learn/data/dataset.h"

namespace fedge::learn {

// Checks that a model can be made for this data set. `text`: it declares that its samples are texts.
Result<void> check_info(const DatasetInfo& info, bool text);
// Checks that each label is below `classes`, and `classes` is that of the description.
Result<void> check_labels(std::span<const Label> labels, std::size_t classes, const DatasetInfo& info,
                          const std::string& function);
// Checks the labels, that arrays have a place for each sample, and that floats and tokens are in range. There
// may be no samples.
Result<void> check_samples(const Dataset& data, const DatasetInfo& info, const std::string& function);

}  // namespace fedge::learn
