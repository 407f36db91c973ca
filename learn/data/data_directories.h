// The directories of data sets on a device. A coordinator only names a data set; the device decides where it
// is, so that a coordinator cannot choose which files are read.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "core/result.h"
#include "learn/spec.h"

namespace fedge::learn {

// Directory by data set; "" is for all data sets without an entry.
using DataDirectories = std::map<std::string, std::filesystem::path>;

// Parses texts "DIR" and "NAME=DIR". kInvalid if one is not a directory, or if a data set has two.
Result<DataDirectories> read_data_directories(std::span<const std::string> texts);

// Sets data.directory to this device's directory for the data set. Without one, corpora and data sets that a
// program registers use their default directory, and the data set "text" is an error. Images keep the run's
// directory, since their file names and format are fixed.
Result<void> choose_directory(const DataDirectories& directories, DataSpec& data);

}  // namespace fedge::learn
