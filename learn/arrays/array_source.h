// Arrays as a data set: NumPy files with an array of inputs, one row for each sample, and an array of integer
// labels. The names of the arrays and the shape of a sample are the run's; the path is the device's choice
// (DataSpec::directory): a file or a directory of files, in the order of their names. A .npz archive has both
// arrays; of .npy files, the one whose name ends with the name of the inputs ("train-x.npy") belongs to the
// one that ends with the name of the labels ("train-y.npy").
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/result.h"
#include "learn/arrays/array_schema.h"
#include "learn/data/dataset.h"

namespace fedge::learn {

// Reads all samples of these files, in their order. Errors name the file, the array and the element: kInvalid
// for a shape or a type that does not fit, different numbers of inputs and labels, a value that is not
// finite, a label out of range; otherwise those of ArrayStream.
Result<Dataset> read_arrays(const ArraySchema& schema, std::span<const std::filesystem::path> files);

// The data set "arrays" (learn/data/kinds.h).
std::shared_ptr<const DataSource> read_array_source(config::Reader& section);

}  // namespace fedge::learn
