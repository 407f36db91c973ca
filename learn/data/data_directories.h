// Where data sets lie on a device. A coordinator does not choose which texts a device reads: it names a data
// set, and the device knows where that is.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "core/result.h"
#include "learn/spec.h"

namespace fedge::learn {

// By data set; "" is of all that are not named.
using DataDirectories = std::map<std::string, std::filesystem::path>;

// From texts "DIR" and "NAME=DIR". Errors name the text: no directory is there, or a data set has two.
Result<DataDirectories> read_data_directories(std::span<const std::string> texts);

// Sets data.directory to this device's. If it has none, corpora are where their packages put them, the data
// set "text" is an error, and pictures, whose files have fixed names and one format, are where the run says.
Result<void> choose_directory(const DataDirectories& directories, DataSpec& data);

}  // namespace fedge::learn
