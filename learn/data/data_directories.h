// The paths of data sets on a device. A coordinator only names the data; the device decides where it is, so
// that a coordinator cannot choose which files are read.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "core/result.h"
#include "learn/spec.h"

namespace fedge::learn {

// Path by the name of the data (data_name()); "" is the directory of all data sets without an entry.
using DataDirectories = std::map<std::string, std::filesystem::path>;

// Parses texts "DIR" and "NAME=PATH". kInvalid if a path does not exist, or if a name has two.
Result<DataDirectories> read_data_directories(std::span<const std::string> texts);

// Sets data.directory to this device's path for the data. Without one, corpora and data sets that a program
// registers use their default directory, the data set "text" is an error, and images keep the run's
// directory, since their file names and format are fixed. Own data (data.partition.kind = "own") and data
// sets in files of the user need a path with their name: otherwise kNotFound.
Result<void> choose_directory(const DataDirectories& directories, DataSpec& data);
// Sets data.directory to the path given for a simulation or on the coordinator, if one is given. kInvalid if
// a path has another name than the run's data.
Result<void> choose_directory_here(const DataDirectories& directories, DataSpec& data);

}  // namespace fedge::learn
