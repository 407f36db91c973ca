// The power file of a device: a TOML file in which its owner describes the energy of its work, for runs that
// plan it (`fedge-client run --power FILE`). docs/algorithms/energy.md says how the values are measured.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/energy/power.h"
#include "core/result.h"

namespace fedge {

// kInvalid names file, line and key.
Result<DevicePower> read_power_file(const std::filesystem::path& path);
// A file that reads back as exactly this description.
std::string power_file_text(const DevicePower& power);
// Its keys, for the generated reference.
std::vector<config::KeyDoc> describe_power_file();

}  // namespace fedge
