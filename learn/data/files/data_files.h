// The files at a path that a device's owner or a researcher names: a file, or a directory of files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fedge::learn {

// The file in a directory of data that says which client has which sample (learn/data/files/own_data.h).
inline constexpr const char* kClientIndex = "clients.csv";

// Most features of a sample, and of all samples of a client together: 4 GiB. A run's schema may need far more
// memory than a device's files.
inline constexpr std::size_t kMaxFeatures = 1'000'000;
inline constexpr std::size_t kMaxValues = std::size_t{1} << 30;

// The file itself, whatever its name, or the files of the directory whose names have one of these endings
// (".csv"), ascending by name; hidden ones and clients.csv are left out. kNotFound if there is nothing at the
// path or no such file in the directory.
Result<std::vector<std::filesystem::path>> files_at(const std::filesystem::path& path,
                                                    std::span<const std::string_view> endings);

// The files and directories in a directory, ascending by name, without hidden ones. kNotFound if there is no
// such directory.
Result<std::vector<std::filesystem::path>> entries_of(const std::filesystem::path& directory);

}  // namespace fedge::learn
