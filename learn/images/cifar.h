// CIFAR-10 and CIFAR-100 in their binary form (Krizhevsky, "Learning multiple layers of features from tiny
// images", 2009, as published beside the report): records of one label byte, or for CIFAR-100 a coarse and a
// fine one, and 32 x 32 pixels of red, then of green, then of blue. The path is a file or a directory of
// files *.bin. With data.split.kind = "file", those whose names begin with "test" are for testing, and the
// others for training.
#pragma once

#include <memory>

#include "core/config/reader.h"
#include "learn/data/dataset.h"

namespace fedge::learn {

// The data sets "cifar-10" and "cifar-100" (learn/data/kinds.h).
std::shared_ptr<const DataSource> read_cifar_10(config::Reader& section);
std::shared_ptr<const DataSource> read_cifar_100(config::Reader& section);

}  // namespace fedge::learn
