// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017) as Debian ships it: 60,000 + 10,000 images, 28x28, 10 classes.
// The result holds bytes. Files are used only after their size, checksum and labels have been checked.
#pragma once

#include <memory>

#include "core/config/reader.h"
#include "learn/data/dataset.h"

namespace fedge::learn {

std::shared_ptr<const DataSource> read_fashion_mnist(config::Reader& section);

}  // namespace fedge::learn
